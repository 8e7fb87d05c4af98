// Features of a page that viser lacks: textures, keys, names of controls, dropped files. The script may run many times.
(() => {
  if (window.synovia) return;

  const shared = window.synoviaShared; // internals of viser's client, from serving/tab.js

  // viser 1.1 sets this table's entry of a removed mesh to null, but expects undefined: the whole page breaks when a
  // skinned mesh is removed. So the table is replaced by one that gives undefined for null.
  if (shared)
    shared.nodeRefFromName = new Proxy(shared.nodeRefFromName, { get: (table, name) => table[name] ?? undefined });
  // In viser's client, an update of a removed control is an error, so such updates are dropped here. They occur because
  // the client first removes controls in each frame and updates others at its end, and because one thread of the server
  // may update a control while another removes it.
  const queue = shared?.messageQueue;
  const gone = new Set();
  const isLate = ({ type, uuid }) => type === "GuiUpdateMessage" && gone.has(uuid);
  if (queue)
    queue.push = (...messages) => {
      const removed = messages.filter(({ type }) => type === "GuiRemoveMessage");
      for (const { uuid } of removed) gone.add(uuid);
      if (removed.length)
        for (let i = queue.length - 1; i >= 0; i--) if (isLate(queue[i])) queue.splice(i, 1);
      return Array.prototype.push.apply(queue, messages.filter((message) => !isLate(message)));
    };
  window.synovia = { nodes: shared?.nodeRefFromName };

  // Textures and vertex colours, which viser's meshes do not support: scene/paint.py puts them into hidden elements.
  const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const textures = {}; // by name
  const linear = (value) => Math.pow(value, 2.2);

  // three.js's texture class is taken from an existing texture: of a skeleton, of instanced meshes, or of shadows.
  const textureClass = (mesh) => {
    let top = mesh;
    while (top.parent) top = top.parent;
    let made = mesh.skeleton?.boneTexture;
    top.traverse((one) => {
      made ??= one.shadow?.map?.texture ?? Object.values(one).find((value) => value?.isTexture);
    });
    let kind = made && Object.getPrototypeOf(made);
    while (kind && !Object.hasOwn(kind, "transformUv")) kind = Object.getPrototypeOf(kind);
    return kind?.constructor;
  };

  const textureOf = (name, jpeg, mesh) => {
    const Texture = textureClass(mesh);
    if (!Texture) return null; // nothing has been drawn yet
    if (jpeg) {
      const image = new Image();
      const texture = (textures[name] = new Texture(image));
      texture.flipY = false;
      texture.colorSpace = "srgb";
      texture.wrapS = texture.wrapT = 1000; // repeat
      texture.anisotropy = 4;
      image.onload = () => (texture.needsUpdate = true);
      image.src = `data:image/jpeg;base64,${jpeg}`;
    }
    return textures[name] ?? null;
  };

  // Each corner of a triangle has its own texture coordinates, so triangles get separate vertices. These keep the
  // normals, so that the surface stays smooth across the seams of the texture.
  const unfold = (geometry, corners, steps) => {
    const index = geometry.index.array;
    for (const name of Object.keys(geometry.attributes)) {
      const { array, itemSize, constructor } = geometry.attributes[name];
      const out = new array.constructor(index.length * itemSize);
      for (let i = 0; i < index.length; i++)
        for (let k = 0; k < itemSize; k++) out[i * itemSize + k] = array[index[i] * itemSize + k];
      geometry.setAttribute(name, new constructor(out, itemSize));
    }
    const Attribute = geometry.attributes.position.constructor;
    geometry.setAttribute("uv", new Attribute(Float32Array.from(corners, (value) => value / steps), 2));
    geometry.setIndex(null);
  };

  // Paint a mesh; return false if the mesh or the texture class does not exist yet.
  const paint = (element) => {
    const { node, vertices, faces, image, tint, steps } = JSON.parse(element.dataset.mesh);
    const mesh = shared?.nodeRefFromName[node]?.children.find((one) => one.isMesh && one.geometry.index);
    const geometry = mesh?.geometry;
    if (!geometry || geometry.attributes.position.count !== vertices || geometry.index.count !== 3 * faces) return false;
    const bytes = bytesOf(element.dataset.values);
    let map = null;
    if (image) {
      map = textureOf(image, element.dataset.image, mesh);
      if (!map) return false;
      unfold(geometry, new Uint32Array(bytes.buffer), steps);
    } else {
      const Attribute = geometry.attributes.position.constructor;
      geometry.setAttribute("color", new Attribute(Float32Array.from(bytes, (value) => linear(value / 255)), 3));
    }
    // viser makes another material when the surface becomes translucent, so each one is painted before it is drawn.
    mesh.onBeforeRender = (renderer, scene, camera, drawn, material) => {
      if (material.userData.synovia || !material.isMeshStandardMaterial) return;
      material.userData.synovia = true;
      material.map = map;
      material.vertexColors = !map;
      material.color.setRGB(...(tint ?? [1, 1, 1]).map(linear));
      material.needsUpdate = true;
    };
    return true;
  };
  const waiting = new Set();
  const paintAll = () => {
    for (const element of document.querySelectorAll(".synovia-paint:not([data-seen])")) {
      element.dataset.seen = "yes";
      waiting.add(element);
    }
    for (const element of waiting) if (!element.isConnected || paint(element)) waiting.delete(element);
    if (waiting.size) setTimeout(paintAll, 200);
  };

  // Keys: viser's commands listen at the document's element, its camera at the document.
  // - A control that has the focus keeps the keys that it uses itself: blank, Enter, Tab and arrows.
  // - Arrows move a target, so they do not reach the camera; with Ctrl they do.
  // - Of the keys that are held down, only arrows and undo repeat.
  // - Escape gives the focus back to the scene, and so does a control that a mouse has clicked, unless it takes text:
  //   the next blank plays the clip and does not click the control again.
  const own =
    "button,a,summary,[role=button],[role=slider],[role=tab],[role=option],[role=dialog],[role=listbox]";
  document.body.addEventListener("keydown", (e) => {
    const arrow = e.key.startsWith("Arrow");
    const chord = e.ctrlKey || e.metaKey;
    if (e.key === "Escape" && document.activeElement) document.activeElement.blur();
    const uses = arrow || [" ", "Enter", "Tab", "Delete"].includes(e.key);
    if (uses && e.target.closest && e.target.closest(own)) e.stopPropagation();
    else if (e.repeat && !arrow && !chord && e.key !== "Tab") e.stopPropagation();
  });
  document.documentElement.addEventListener("keydown", (e) => {
    if (e.key.startsWith("Arrow") && !e.ctrlKey && !e.metaKey) e.stopPropagation();
  });

  window.addEventListener("click", (e) => {
    const held = document.activeElement;
    if (e.detail && held?.matches?.("input[type=checkbox],button:not([aria-haspopup])") && !held.closest("[role=dialog],.tl-sheet"))
      held.blur();
  });

  // viser calls preventDefault in a passive listener when a drag begins, which only writes an error into the console.
  window.addEventListener(
    "pointerdown",
    (e) => e.target.closest?.("canvas") && Object.defineProperty(e, "preventDefault", { value: () => {} }),
    true,
  );

  // Names of controls for screen readers: viser shows a label next to an input, but does not link them.
  const icons = {
    "tabler-icon-list-search": "List of commands",
    "tabler-icon-adjustments": "Settings of the connection",
    "tabler-icon-arrow-back": "Back",
    "tabler-icon-chevrons-right": "Hide the panel",
    "tabler-icon-chevrons-left": "Show the panel",
  };
  const put = (node, name, value) => node.getAttribute(name) !== value && node.setAttribute(name, value);
  const inputs = "input:not([type=hidden]):not([type=file]),[role=slider],textarea";
  const nameControls = () => {
    for (const label of document.querySelectorAll("label")) {
      const text = label.textContent.trim();
      const beside = label.parentElement?.parentElement?.nextElementSibling;
      if (!text || !beside) continue;
      const all = [...beside.querySelectorAll(inputs)];
      const thumbs = all.filter((one) => one.getAttribute("role") === "slider").length;
      let thumb = 0;
      for (const one of all) {
        const ends = thumbs === 2 && one.getAttribute("role") === "slider";
        put(one, "aria-label", ends ? `${text}, ${["lower", "upper"][thumb++]}` : text);
      }
    }
    for (const button of document.querySelectorAll("button:not([aria-label])")) {
      if (button.textContent.trim()) continue;
      const icon = Object.keys(icons).find((name) => button.querySelector(`.${name}`));
      const closes = button.matches(".mantine-CloseButton-root");
      put(button, "aria-label", closes ? "Dismiss this message" : icon ? icons[icon] : "More");
    }
    const scene = document.querySelector("canvas[data-engine]")?.parentElement;
    if (scene) {
      put(scene, "role", "main");
      put(scene, "aria-label", "Scene. Tab chooses a target, arrow keys move it, Control K lists all keys.");
    }
    const status = document.querySelector(".synovia-status");
    if (status) put(status, "role", "status");
    const panel = status?.closest(".mantine-Paper-root");
    if (panel) {
      put(panel, "role", "region");
      put(panel, "aria-label", "Controls");
    }
  };
  // The tree of joints. A search shows the matching joints with their ancestors; Enter selects the first match.
  const plain = (text) => text.toLowerCase().replace(/[\s_.:-]+/g, "");
  const search = (tree) => {
    const words = plain(tree.querySelector("input").value);
    for (const item of [...tree.querySelectorAll("li")].reverse()) {
      const found = plain(item.querySelector("button").textContent).includes(words);
      const below = [...item.querySelectorAll(":scope > details > ul > li")].some((one) => !one.hidden);
      item.hidden = Boolean(words) && !found && !below;
      const fold = item.querySelector(":scope > details");
      if (!fold) continue;
      fold.dataset.first ??= fold.open;
      fold.open = words ? below : fold.dataset.first === "true";
    }
  };
  // The chosen joint goes into a hidden text field; a last number makes each choice a change.
  let choices = 0;
  const report = (uuid, ...numbers) => {
    const value = [...numbers, ++choices].join(" ");
    shared?.sendMessage({ type: "GuiUpdateMessage", uuid, updates: { value } });
  };
  const choose = (button) => report(button.closest(".synovia-tree").dataset.uuid, button.dataset.row);
  document.body.addEventListener("click", (e) => {
    const button = e.target.closest?.(".synovia-tree button");
    if (!button) return;
    e.preventDefault(); // of the enclosing fold, which would open or close
    choose(button);
  });
  document.body.addEventListener("input", (e) => e.target.matches?.(".synovia-tree input") && search(e.target.parentElement));
  document.body.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || !e.target.matches?.(".synovia-tree input")) return;
    const words = plain(e.target.value);
    const found = [...e.target.parentElement.querySelectorAll("button")].find((one) => plain(one.textContent).includes(words));
    if (found && words) choose(found);
  });
  // The time line: the page puts its data into hidden elements; actions go into hidden text fields.
  const dock = document.createElement("div");
  document.body.append(dock);
  const timeline = new TimeLine(dock, (name, ...given) => {
    const { fields, slow } = document.querySelector(".synovia-time").dataset;
    const uuid = fields.split(" ")[slow.split(" ").includes(name) ? 1 : 0];
    shared?.sendMessage({ type: "GuiUpdateMessage", uuid, updates: { value: JSON.stringify([++choices, name, ...given]) } });
  });
  // The camera moves with the body, by displacements from its first position, which begin at 0 on each page.
  let [followed, place] = ["", [0, 0, 0]];
  const followBody = (text = "") => {
    const [control, body] = [shared?.cameraControl, shared?.nodeRefFromName["/body"]];
    if (!text || !control || !body) return;
    const [page, ...next] = text.split(" ");
    if (page !== followed) [followed, place] = [page, [0, 0, 0]];
    if (next.every((value, k) => Number(value) === place[k])) return;
    const Vector = body.position.constructor;
    const [from, to] = [place, next.map(Number)].map((one) => body.localToWorld(new Vector(...one)));
    const target = control.getTarget(new Vector()).add(to).sub(from);
    control.moveTo(target.x, target.y, target.z, false);
    shared.requestRender?.();
    place = next.map(Number);
  };
  // The name of the joint under the pointer. Balls of joints are one mesh with many instances.
  const hint = Object.assign(document.createElement("div"), { className: "synovia-hint", hidden: true });
  hint.setAttribute("aria-hidden", "true"); // the tree of joints has the names
  document.body.append(hint);
  const NEAR = 14; // pixels
  const jointAt = (e) => {
    let mesh;
    shared?.nodeRefFromName["/body/joints"]?.traverse((one) => (mesh ??= one.matricesTexture && one));
    const values = mesh?.visible && mesh.matricesTexture._data;
    if (!values || !shared.camera) return -1;
    const box = e.target.getBoundingClientRect();
    const at = new mesh.position.constructor();
    let [found, nearest] = [-1, Infinity];
    for (let i = 0; i < mesh.count; i++) {
      at.fromArray(values, 16 * i + 12).applyMatrix4(mesh.matrixWorld).project(shared.camera);
      const away = Math.hypot(box.left + (box.width * (1 + at.x)) / 2 - e.clientX, box.top + (box.height * (1 - at.y)) / 2 - e.clientY);
      if (away < NEAR && at.z < 1 && away < nearest) [found, nearest] = [i, away];
    }
    return found;
  };
  window.addEventListener("pointermove", (e) => {
    const names = document.querySelector(".synovia-joints")?.dataset.names;
    const joint = names && !e.buttons && e.target.matches?.("canvas") ? jointAt(e) : -1;
    hint.hidden = joint < 0;
    if (joint < 0) return;
    hint.textContent = JSON.parse(names)[joint];
    hint.style.translate = `${e.clientX + 14}px ${e.clientY - 10}px`;
  }, { passive: true });
  let [clip, moment] = ["null", ""];
  const followClip = () => {
    const next = document.querySelector(".synovia-time")?.dataset.content ?? "null";
    if (next !== clip) {
      timeline.show(JSON.parse((clip = next)));
      moment = "";
    }
    const state = document.querySelector(".synovia-now")?.dataset;
    followBody(state?.at);
    const now = state?.now ?? "";
    if (now === moment || !now) return;
    moment = now;
    const [frame, playing] = now.split(" ").map(Number);
    timeline.at(frame, playing === 1);
  };
  // Arrow keys go to the part that was used last: the time line, or the targets in the scene.
  let inScene = false;
  window.addEventListener("pointerdown", (e) => {
    if (e.target.closest?.("canvas")) inScene = true;
    else if (dock.contains(e.target)) inScene = false;
  }, true);
  document.body.addEventListener("keydown", (e) => {
    if (e.key === "Tab") inScene = true;
    if (inScene || dock.hidden || !e.key.startsWith("Arrow") || e.target !== document.body || !timeline.key(e)) return;
    e.preventDefault();
    e.stopPropagation();
  });
  const markJoint = (tree, row) => {
    for (const button of tree.querySelectorAll("button")) {
      if (button.dataset.row !== row) button.removeAttribute("aria-current");
      else if (!button.hasAttribute("aria-current")) {
        button.setAttribute("aria-current", "true");
        for (let fold = button.closest("li").parentElement; fold !== tree; fold = fold.parentElement)
          if (fold.matches("details")) fold.open = true;
        if (tree.open) button.scrollIntoView({ block: "nearest" });
      }
    }
  };
  const openTab = (name) => {
    const tab = [...document.querySelectorAll("[role=tab]")].find((one) => one.textContent.trim() === name);
    tab?.click();
    tab?.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  };
  const openTree = (tries) => {
    const tree = document.querySelector(".synovia-tree");
    if (!tree?.offsetParent) {
      if (!tries) return;
      openTab("Pose");
      setTimeout(() => openTree(tries - 1), 200);
      return;
    }
    tree.open = true;
    tree.querySelector("input").focus();
    tree.querySelector("input").select();
  };
  let searches = "0";
  const followJoint = () => {
    const state = document.querySelector(".synovia-status")?.dataset;
    const tree = document.querySelector(".synovia-tree");
    if (state && tree) markJoint(tree, state.joint);
    const asked = state?.searches ?? (state ? "0" : searches); // some pages have no joints to search
    if (asked === searches) return;
    searches = asked;
    if (searches !== "0") openTree(20);
  };
  // viser reports a file as uploaded even if the page refuses it, so the page's message replaces this report.
  const answerUploads = () => {
    const status = document.querySelector(".synovia-status");
    for (const box of document.querySelectorAll(".mantine-Notification-description")) {
      if (box.textContent === "File uploaded successfully.") box.dataset.synovia = "upload";
      const text = status?.dataset.said ? status.textContent : "The page has the file.";
      if (box.dataset.synovia && box.textContent !== text) box.textContent = text;
    }
  };
  let due = 0;
  new MutationObserver(() => {
    followClip();
    due ||= setTimeout(() => {
      due = 0;
      nameControls();
      answerUploads();
      followJoint();
      if (!waiting.size) paintAll();
    }, 200);
  }).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-content", "data-now"] });
  followClip();
  nameControls();
  paintAll();

  // A file that is dropped anywhere goes to the button of the tab Open, which is there once the tab has been shown.
  const send = (file, tries) => {
    const input = document.querySelector('input[type=file][id^="file_upload_"]');
    if (!input && !tries) return;
    if (!input) {
      openTab("Open");
      setTimeout(() => send(file, tries - 1), 200);
      return;
    }
    const one = new DataTransfer();
    one.items.add(file);
    input.files = one.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  };
  // A click folds or unfolds a long message.
  document.addEventListener("click", (event) => {
    event.target.closest?.(".synovia-status > div")?.toggleAttribute("data-folded");
  });
  // A file that is too large is refused at once. Other files are sent in parts, as fast as the server accepts data from
  // a browser: viser would send them without a pause, and the server would close the connection.
  const tell = (text) => {
    for (const old of document.querySelectorAll(".synovia-notice")) old.remove();
    const box = Object.assign(document.createElement("div"), { className: "synovia-notice", textContent: text });
    box.setAttribute("role", "alert");
    document.body.append(box);
    setTimeout(() => box.remove(), 10000);
  };
  const isSendable = (file) => {
    const { largest } = window.synoviaLimits;
    if (file.size <= largest) return true;
    const [has, most] = [file.size, largest].map((bytes) => `${Math.ceil(bytes / 2 ** 20)} MiB`);
    tell(`${file.name} is too large: it has ${has}, and a page takes ${most}. Open it with: synovia view ${file.name}`);
    return false;
  };
  const pace = (file) => {
    const { rate, burst } = window.synoviaLimits;
    const begun = performance.now();
    file.slice = (start, end, ...rest) => {
      const part = File.prototype.slice.call(file, start, end, ...rest);
      part.arrayBuffer = async () => {
        const early = (1000 * (end - burst)) / rate - (performance.now() - begun);
        if (early > 0) await new Promise((go) => setTimeout(go, early));
        return Blob.prototype.arrayBuffer.call(part);
      };
      return part;
    };
  };
  window.addEventListener(
    "change",
    (e) => {
      const file = e.target.matches?.("input[type=file]") && e.target.files[0];
      if (!file) return;
      if (isSendable(file)) pace(file);
      else e.stopImmediatePropagation();
    },
    true,
  );
  const carries = (e) => [...(e.dataTransfer?.types ?? [])].includes("Files");
  window.addEventListener("dragover", (e) => {
    if (!carries(e)) return;
    e.preventDefault();
    e.dataTransfer.dropEffect = "copy";
    document.body.classList.add("synovia-drop");
  });
  window.addEventListener("dragleave", (e) => {
    if (!e.relatedTarget) document.body.classList.remove("synovia-drop");
  });
  window.addEventListener("drop", (e) => {
    document.body.classList.remove("synovia-drop");
    if (!carries(e)) return;
    e.preventDefault();
    const file = e.dataTransfer.files[0];
    if (file && isSendable(file)) send(file, 50);
  });
})();
