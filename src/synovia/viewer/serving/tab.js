// Finds internals of viser's client, and reports the name of this browser tab, so that the tab finds its work again
// after a reload. The script may run many times.
(() => {
  // viser's table of the nodes of the scene: three.js objects by name.
  const findShared = () => {
    const root = document.getElementById("root");
    const key = root && Object.keys(root).find((name) => name.startsWith("__reactContainer"));
    const open = key ? [root[key]] : [];
    while (open.length) {
      const fiber = open.pop();
      const shared = fiber.memoizedProps?.value?.mutable?.current;
      if (shared?.nodeRefFromName) return shared;
      if (fiber.sibling) open.push(fiber.sibling);
      if (fiber.child) open.push(fiber.child);
    }
    return null;
  };
  const shared = (window.synoviaShared ??= findShared());
  let value = "";
  try {
    value = sessionStorage.getItem("synovia-tab") ?? `${Date.now()}-${Math.random()}`;
    sessionStorage.setItem("synovia-tab", value);
  } catch {
    // A browser may deny storage to a page in a frame; its work then ends with the visit.
  }
  shared?.sendMessage({ type: "GuiUpdateMessage", uuid: window.synoviaTab, updates: { value } });
})();
