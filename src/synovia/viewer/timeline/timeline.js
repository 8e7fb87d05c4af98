// The time line of a clip: transport, ruler, and rows of layers, keys, contacts of feet, findings and curves. A page
// gives it data, see timeline.py, and a function that is called with the name and arguments of each action of the user.
class TimeLine {
  static SHAPES = {
    first: "M2 3h2v10H2zM9 3v10L4.5 8zM14 3v10L9.5 8z",
    back: "M4 3h2v10H4zM13 3v10L6.5 8z",
    play: "M4 2l10 6-10 6z",
    pause: "M3.5 3h3.5v10H3.5zM9 3h3.5v10H9z",
    stop: "M3.5 3.5h9v9h-9z",
    ahead: "M10 3h2v10h-2zM3 3v10l6.5-5z",
    last: "M12 3h2v10h-2zM7 3v10l4.5-5zM2 3v10l4.5-5z",
    loop: "M11 1l3.5 3L11 7V5H4v3.5H2V5a2 2 0 0 1 2-2h7zM5 15l-3.5-3L5 9v2h7V7.5h2V11a2 2 0 0 1-2 2H5z",
    fold: "M8 11.5L2.5 6 4 4.5l4 4 4-4L13.5 6z",
    closer: "M7 3h2v4h4v2H9v4H7V9H3V7h4z",
    farther: "M3 7h10v2H3z",
    all: "M1 3h2v10H1zM13 3h2v10h-2zM4 8l3-3v2h2V5l3 3-3 3V9H7v2z",
    sound: "M8 4.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7z",
    muted: "M8 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zm0 1.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z",
  };
  static SPEEDS = [0.25, 0.5, 1, 2, 4];
  static STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000];
  static SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];
  static WIDEST = 28; // largest width of a frame, pixels
  static within = (value, low, high) => Math.min(Math.max(value, low), high);

  // Make an element; names with a minus are attributes, and `id` identifies the element when it is replaced.
  static make(kind, { id, left, ...properties } = {}, ...children) {
    const out = document.createElement(kind);
    for (const [name, value] of Object.entries(properties)) name.includes("-") || name === "role" ? out.setAttribute(name, value) : (out[name] = value);
    if (id !== undefined) out.dataset.id = id;
    if (left !== undefined) out.style.left = left;
    out.append(...children);
    return out;
  }

  constructor(root, act) {
    this.root = root;
    this.act = act;
    this.data = null;
    this.frame = 0;
    this.zoom = 1;
    this.inSeconds = false;
    this.held = null; // what the pointer drags
    this.quiet = 0; // until this time, frames from the page are older than the user's choice
    root.classList.add("tl");
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", "Time line");
    root.hidden = true;
    root.addEventListener("keydown", (e) => {
      if (e.target.matches("input,select") || (e.target.matches(".tl-bar button") && [" ", "Enter"].includes(e.key))) return;
      if (!this.key(e)) return;
      e.preventDefault();
      e.stopPropagation();
    });
    this.transport();
    const { make } = TimeLine;
    this.sheet = make("div", { className: "tl-sheet" });
    this.body = make("div", { className: "tl-body" }, this.sheet);
    this.body.addEventListener("scroll", () => this.rule(), { passive: true });
    this.body.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    root.append(this.body);
    this.fold(innerWidth < 640);
    new ResizeObserver(() => this.fit()).observe(this.body);
    for (const event of ["pointerdown", "pointerup", "pointercancel"])
      window.addEventListener(event, (e) => {
        this.pressed = event === "pointerdown" && !!e.target.closest?.("canvas");
        setTimeout(() => this.measure()); // viser ends its drag first
      }, true);
  }

  // --- transport

  icon(name) {
    return `<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d="${TimeLine.SHAPES[name]}"/></svg>`;
  }
  // A button with an icon or a word.
  button(look, label, click, { key = "", id, ...others } = {}) {
    const title = key ? `${label} (${key})` : label;
    const out = TimeLine.make("button", { type: "button", title, "aria-label": label, id, onclick: click, ...others });
    if (look in TimeLine.SHAPES) out.innerHTML = this.icon(look);
    else out.textContent = look;
    return out;
  }
  transport() {
    const { make } = TimeLine;
    const step = (by) => () => this.step(by);
    this.playing = this.button("play", "Play", () => this.act("play", this.data.playing ? 0 : 1), { key: "Space", className: "tl-play" });
    this.looping = this.button("loop", "Loop", () => this.act("loop", this.data.loop ? 0 : 1));
    const typed = () => {
      const value = Number(this.field.value.replace(",", "."));
      if (this.field.value.trim() && Number.isFinite(value)) this.go(this.inSeconds ? value * this.data.fps : value);
      this.write();
    };
    this.field = make("input", { type: "text", inputMode: "decimal", className: "tl-frame", onchange: typed });
    this.field.onkeydown = (e) => e.key === "Enter" && this.field.blur();
    this.of = make("span", { className: "tl-of" });
    this.unit = this.button("", "", () => {
      this.inSeconds = !this.inSeconds;
      this.write();
      this.rule();
    });
    this.speed = make("select", { title: "Speed of playback. It does not change what is saved.", "aria-label": "Speed of playback" });
    for (const one of TimeLine.SPEEDS) this.speed.append(make("option", { value: one }, `${one}×`));
    this.speed.onchange = () => this.act("speed", Number(this.speed.value));
    this.range = [
      this.button("In", "In: playback begins at this frame", () => this.act("mark", 0), { key: "I" }),
      this.button("Out", "Out: playback ends at this frame", () => this.act("mark", 1), { key: "O" }),
      this.button("All", "Play all frames", () => this.plays(0, this.data.last)),
    ];
    this.curving = this.button("Curves", "Curves of the selected joint", () => this.act("curves", this.data.curving ? 0 : 1));
    this.more = make("span", { className: "tl-more" }, this.speed, this.unit, ...this.range, this.curving,
      this.button("farther", "Show more frames", () => this.scale(0.5), { key: "−" }),
      this.button("closer", "Show fewer frames", () => this.scale(2), { key: "+" }),
      this.button("all", "Show all frames", () => this.scale(0), { key: "0" }));
    this.extra = make("span", { className: "tl-extra" }); // for controls of the page
    this.folding = this.button("fold", "Rows", () => this.fold(!this.root.classList.contains("tl-folded")), { className: "tl-fold" });
    this.root.append(make("div", { className: "tl-bar", role: "group", "aria-label": "Playback" },
      this.button("first", "First frame", step(-Infinity), { key: "Home" }), this.button("back", "Frame before", step(-1), { key: "←" }),
      this.playing, this.button("stop", "Stop", () => this.act("stop")), this.button("ahead", "Next frame", step(1), { key: "→" }),
      this.button("last", "Last frame", step(Infinity), { key: "End" }), this.looping,
      make("span", { className: "tl-clock" }, this.field, this.of), this.more, this.extra, this.folding));
  }
  fold(on) {
    this.root.classList.toggle("tl-folded", on);
    this.folding.setAttribute("aria-expanded", String(!on));
    this.fit();
  }

  // --- keys

  // Run the action of a key, and return whether it has one.
  key(e) {
    if (!this.data || e.ctrlKey || e.metaKey || e.altKey) return false;
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    const others = {
      " ": () => this.act("play", this.data.playing ? 0 : 1),
      i: () => this.act("mark", 0), o: () => this.act("mark", 1),
      j: () => this.act("shuttle", -1), k: () => this.act("shuttle", 0), l: () => this.act("shuttle", 1),
      "+": () => this.scale(2), "=": () => this.scale(2), "-": () => this.scale(0.5), "0": () => this.scale(0),
    };
    if (e.key in steps) this.step(steps[e.key] * (e.shiftKey ? 10 : 1));
    else if (e.key.toLowerCase() in others && !(e.shiftKey && e.key.length === 1 && e.key !== "+")) others[e.key.toLowerCase()]();
    else return false;
    return true;
  }
  // Go some frames ahead. The page counts from its own frame, which a slow browser does not show yet.
  step(by) {
    const { first, end, last } = this.data;
    this.appear(TimeLine.within(Math.round(this.frame) + by, first, end));
    this.act("step", TimeLine.within(by, -last, last));
  }
  plays(first, end) {
    Object.assign(this.data, { first, end }); // the next key may come before the answer
    this.act("range", first, end);
  }
  go(frame) {
    const to = TimeLine.within(Math.round(frame), 0, this.data.last);
    this.appear(to);
    this.act("go", to);
  }
  // Show a frame before the page does.
  appear(frame) {
    this.quiet = performance.now() + 300;
    this.put(frame, false);
    this.reveal();
  }

  // --- data

  // Show a clip and its rows; null hides the time line.
  show(data) {
    if (this.held || this.root.querySelector(".tl-name input")) {
      this.later = data; // until the drag or the new name is done
      return;
    }
    const playing = this.data?.playing ?? false;
    this.data = data && { ...data, playing };
    if (this.root.hidden === Boolean(data)) this.root.hidden = !data;
    if (!data) return this.measure();
    const focus = this.sheet.contains(document.activeElement) ? [this.next, document.activeElement.dataset.id] : [this.sought];
    const { make } = TimeLine;
    this.over = make("div", { className: "tl-over" }, make("i", { className: "tl-out" }), make("i", { className: "tl-out" }),
      (this.head = make("i", { className: "tl-head" })));
    this.sheet.replaceChildren(this.ruler(), ...this.rows(), this.over);
    this.root.classList.toggle("tl-bare", this.sheet.children.length === 2);
    this.looping.setAttribute("aria-pressed", String(data.loop));
    if (![...this.speed.options].some((one) => Number(one.value) === data.speed))
      this.speed.append(make("option", { value: data.speed }, `${data.speed}×`));
    this.speed.value = String(data.speed);
    this.curving.hidden = data.curving === undefined;
    this.curving.setAttribute("aria-pressed", String(Boolean(data.curving)));
    this.range[2].hidden = data.first === 0 && data.end === data.last;
    this.put(Math.min(this.frame, data.last), playing);
    this.fit();
    const found = focus.map((id) => [...this.sheet.querySelectorAll("[data-id]")].find((one) => one.dataset.id === id));
    const next = found[0] ?? found[1];
    next?.focus({ preventScroll: true });
    this.sought = next || document.activeElement !== document.body ? undefined : focus[0]; // it may come with the next data
  }
  // Show that the page is at a frame.
  at(frame, playing) {
    clearTimeout(this.late);
    const wait = this.quiet - performance.now();
    if (wait > 0) this.late = setTimeout(() => this.at(frame, playing), wait + 10);
    if (!this.data || this.held?.scrubs || wait > 0) return;
    this.put(frame, playing);
    if (playing) this.reveal();
  }
  put(frame, playing) {
    this.frame = frame;
    if (this.data.playing !== playing) this.data.playing = playing;
    if (this.playing.dataset.on !== String(playing)) {
      this.playing.dataset.on = String(playing);
      this.playing.innerHTML = this.icon(playing ? "pause" : "play");
      this.playing.setAttribute("aria-label", playing ? "Pause" : "Play");
    }
    this.head.style.left = this.place(frame);
    this.write();
  }
  text(frame) {
    return this.inSeconds ? (frame / this.data.fps).toFixed(2) : String(Math.round(frame));
  }
  write() {
    const { last, fps, end, first } = this.data;
    const now = Math.round(this.frame);
    if (document.activeElement !== this.field) this.field.value = this.text(now);
    const whole = first === 0 && end === last ? "" : `, plays ${this.text(first)}–${this.text(end)}`;
    this.of.textContent = `/ ${this.text(last)}${this.inSeconds ? " s" : ` · ${(now / fps).toFixed(2)} s`}${whole}`;
    this.field.setAttribute("aria-label", this.inSeconds ? "Time in seconds" : "Frame");
    this.unit.textContent = this.inSeconds ? "Seconds" : "Frames";
    this.unit.setAttribute("aria-label", `Ruler in ${this.inSeconds ? "seconds" : "frames"}`);
    this.slider.setAttribute("aria-valuenow", now);
    this.slider.setAttribute("aria-valuetext", `frame ${now} of ${last}, ${(now / fps).toFixed(2)} seconds`);
  }
  place(frame) {
    return `${((100 * frame) / Math.max(this.data.last, 1)).toFixed(4)}%`;
  }

  // --- ruler, zoom and scroll

  row(name, track, kind = "") {
    const { make } = TimeLine;
    const head = typeof name === "string" ? make("div", { className: "tl-name", title: name }, make("span", {}, name)) : name;
    return make("div", { className: `tl-row ${kind}` }, head, track);
  }
  track(...children) {
    const out = TimeLine.make("div", { className: "tl-track" }, ...children);
    this.scrubs(out);
    return out;
  }
  ruler() {
    const { make } = TimeLine;
    const { first, end, last } = this.data;
    this.ticks = make("div", { className: "tl-ticks" });
    const ends = [["first", first, "Playback begins"], ["end", end, "Playback ends"]].map(([part, frame, label]) => {
      const out = make("i", {
        className: `tl-end tl-${part}`, tabIndex: 0, role: "slider", title: `${label} here: drag`, id: part, left: this.place(frame),
        "aria-label": label, "aria-valuenow": frame, "aria-valuemin": 0, "aria-valuemax": last,
      });
      const put = (to) => {
        const { first, end } = this.data;
        this.plays(...(part === "first" ? [TimeLine.within(to, 0, end - 1), end] : [first, TimeLine.within(to, first + 1, last)]));
      };
      this.drags(out, (to) => (out.style.left = this.place(to)), put);
      out.onkeydown = (e) => this.arrows(e, (by) => put(this.data[part] + by));
      return out;
    });
    this.slider = make("div", {
      className: "tl-track tl-slider", tabIndex: 0, role: "slider", id: "slider", "aria-label": "Frame", "aria-valuemin": 0, "aria-valuemax": last,
    }, this.ticks);
    this.scrubs(this.slider);
    const track = make("div", { className: "tl-both" }, this.slider, make("div", { className: "tl-ends" }, ...ends));
    return this.row("", track, "tl-ruler");
  }
  fit() {
    const room = this.body.clientWidth;
    if (!this.data || !room) return this.measure();
    this.zoom = TimeLine.within(this.zoom, 1, Math.max((TimeLine.WIDEST * this.data.last) / room, 1));
    this.sheet.style.width = this.zoom > 1 ? `${Math.round(room * this.zoom)}px` : "100%";
    const [low, high] = this.over.children;
    low.style.right = `calc(100% - ${this.place(this.data.first)})`;
    high.style.left = this.place(this.data.end);
    this.rule();
    this.measure();
  }
  // A drag in the scene can add a row; the scene keeps its size until it ends, so that what is held stays in place.
  measure() {
    if (this.pressed) return;
    document.documentElement.style.setProperty("--tl-height", this.root.hidden ? "0px" : `${this.root.offsetHeight}px`);
  }
  // Zoom by a factor around a frame; 0 shows all frames.
  scale(by, around = this.frame) {
    const x = this.slider.getBoundingClientRect();
    const at = x.left + (x.width * around) / Math.max(this.data.last, 1);
    this.zoom = by ? this.zoom * by : 1;
    this.fit();
    const after = this.slider.getBoundingClientRect();
    this.body.scrollLeft += after.left + (after.width * around) / Math.max(this.data.last, 1) - at;
    if (around === this.frame) this.reveal();
  }
  wheel(e) {
    if (!this.data || !(e.ctrlKey || e.target.closest(".tl-ruler"))) return;
    e.preventDefault();
    this.scale(Math.exp(-0.004 * e.deltaY), this.frameAt(e.clientX));
  }
  reveal() {
    const [seen, head] = [this.body.getBoundingClientRect(), this.head.getBoundingClientRect()];
    const left = seen.left + this.slider.offsetLeft;
    if (head.left < left) this.body.scrollLeft += head.left - left - 40;
    else if (head.left > seen.right - 8) this.body.scrollLeft += head.left - seen.right + 0.5 * (seen.right - left);
  }
  frameAt(x) {
    const { left, width } = this.slider.getBoundingClientRect();
    return TimeLine.within(Math.round((this.data.last * (x - left)) / Math.max(width, 1)), 0, this.data.last);
  }
  // Write the ticks of the visible frames.
  rule() {
    if (!this.data || !this.slider.isConnected) return;
    const { make } = TimeLine;
    const { last, fps } = this.data;
    const { left, width } = this.slider.getBoundingClientRect();
    const each = width / Math.max(last, 1);
    const unit = this.inSeconds ? fps : 1;
    const wanted = 58 / each / unit;
    const step = unit * ((this.inSeconds ? TimeLine.SECONDS : TimeLine.STEPS).find((one) => one >= wanted) ?? wanted);
    const small = step / (/^0?\.?[23]/.test(String(step / unit)) ? 4 : 5);
    const seen = this.body.getBoundingClientRect();
    const from = Math.max(Math.floor((seen.left - left) / each / step), 0);
    const to = Math.min(Math.ceil((seen.right - left) / each / step), Math.floor(last / step + 1e-9));
    const out = [];
    for (let k = from; k <= to; k++) {
      const text = this.inSeconds ? `${Number((k * step) / fps).toFixed(step < fps ? 1 : 0)} s` : String(Math.round(k * step));
      const tick = make("b", { left: this.place(k * step), className: (last - k * step) * each < 16 ? "tl-final" : "" }, text);
      out.push(tick);
      if (small * each < 5 || (!this.inSeconds && small < 1)) continue;
      for (let frame = k * step + small; frame < (k + 1) * step - 1e-6 && frame <= last; frame += small) out.push(make("i", { left: this.place(frame) }));
    }
    this.ticks.replaceChildren(...out);
  }

  // --- pointers

  // Go to the frame under the pointer, as long as it is held.
  scrubs(track) {
    track.addEventListener("pointerdown", (e) => {
      if (e.button || e.target.closest(".tl-hit,button,.tl-end")) return;
      e.preventDefault();
      this.slider.focus({ preventScroll: true });
      track.setPointerCapture(e.pointerId);
      this.held = { scrubs: true };
      this.go(this.frameAt(e.clientX));
    });
    track.addEventListener("pointermove", (e) => {
      const to = this.held?.scrubs && this.frameAt(e.clientX);
      if (this.held?.scrubs && to !== Math.round(this.frame)) this.go(to);
    });
    for (const end of ["pointerup", "pointercancel"]) track.addEventListener(end, () => this.held?.scrubs && this.drop());
  }
  // Drag an element along the frames: `move` shows each frame, and `done` gets the last one.
  drags(one, move, done, click = () => {}) {
    one.addEventListener("pointerdown", (e) => {
      if (e.button) return;
      e.preventDefault();
      e.stopPropagation();
      one.focus({ preventScroll: true });
      one.setPointerCapture(e.pointerId);
      this.held = { one, x: e.clientX, from: this.frameAt(e.clientX), moved: false };
    });
    one.addEventListener("pointermove", (e) => {
      const held = this.held;
      if (held?.one !== one || (!held.moved && Math.abs(e.clientX - held.x) < 4)) return;
      held.moved = true;
      move(this.frameAt(e.clientX), held.from, e);
    });
    one.addEventListener("pointercancel", () => this.held?.one === one && this.drop(true));
    one.addEventListener("pointerup", (e) => {
      const held = this.held;
      if (held?.one !== one) return;
      this.drop();
      if (held.moved) done(this.frameAt(e.clientX), held.from, e);
      else click(e);
    });
  }
  drop(again = false) {
    const later = this.later ?? (again ? this.data : undefined);
    this.held = null;
    delete this.later;
    if (later !== undefined) this.show(later);
  }
  arrows(e, move) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (!by) return;
    e.preventDefault();
    e.stopPropagation();
    move(by * (e.ctrlKey || e.metaKey ? 10 : 1), e);
  }

  // --- rows

  rows() {
    const { layers = [], keys = [], feet = [], findings = [], curves = [], below = 0 } = this.data;
    const stacked = layers.map((one, number) => this.layer(one, number)).reverse();
    const out = [...stacked.slice(0, layers.length - below), ...keys.map((one, row) => this.keys(one, row)), ...stacked.slice(layers.length - below)];
    if (findings.length) out.unshift(this.findings(findings));
    return [...out, ...feet.map((one) => this.foot(one)), ...curves.map((one) => this.curve(one))];
  }
  spoken({ name, first, last, blend, muted, missed }) {
    return `${name}: frames ${first} to ${last}, fades of ${blend} frames${muted ? ", muted" : ""}${missed ? ", misses its target" : ""}`;
  }
  layer(one, number) {
    const { make } = TimeLine;
    const kind = ["tl-layer", number === this.data.chosen && "tl-chosen", one.muted && "tl-muted", one.missed && "tl-missed"];
    const mute = this.button(one.muted ? "muted" : "sound", `Mute ${one.name}`, () => this.act("mute", number), { key: "M", id: `mute ${number}`, "aria-pressed": one.muted });
    const solo = this.button("S", `Solo ${one.name}`, () => this.act("solo", number), { key: "S", id: `solo ${number}`, "aria-pressed": this.data.solo === number });
    const title = `${one.name}: double-click to rename, drag to reorder`;
    const label = make("button", { type: "button", className: "tl-label", title, id: `label ${number}`, onclick: () => this.act("select", number) }, one.name);
    label.ondblclick = () => this.rename(label, one.name, number);
    this.reorders(label, number);
    const name = make("div", { className: "tl-name" }, mute, solo, label);
    const track = this.track(...this.bar(one, number));
    const row = this.row(name, track, kind.filter(Boolean).join(" "));
    row.dataset.layer = number;
    row.addEventListener("keydown", (e) => this.layerKey(e, one, number, label));
    return row;
  }
  layerKey(e, one, number, label) {
    if (e.target.matches("input") || e.ctrlKey || e.metaKey) return;
    const keys = { m: () => this.act("mute", number), s: () => this.act("solo", number), Delete: () => this.act("remove", number), F2: () => this.rename(label, one.name, number) };
    const up = { ArrowUp: 1, ArrowDown: -1 }[e.key];
    if (e.altKey && up) this.act("order", number, this.slot(number) + up);
    else if (keys[e.key] && !e.altKey) keys[e.key]();
    else return;
    e.preventDefault();
    e.stopPropagation();
  }
  slot(number) {
    return number + (number >= this.data.below && this.data.keys?.length ? 1 : 0);
  }
  bar(one, number) {
    const { make } = TimeLine;
    const { within } = TimeLine;
    const end = this.data.last;
    const parts = [["fade", "in"], ["fade", "out"], ["edge", "first"], ["edge", "last"], ["clip", "move"]];
    const shown = { ...one };
    const changed = (part, by) => {
      const { first, last, blend } = one;
      if (part === "first") return { first: within(first + by, 0, last) };
      if (part === "last") return { last: within(last + by, first, end) };
      if (part === "in") return { blend: within(blend - by, 0, end) };
      if (part === "out") return { blend: within(blend + by, 0, end) };
      const moved = within(by, -first, end - last);
      return { first: first + moved, last: last + moved };
    };
    const draw = () => {
      const { first, last, blend } = shown;
      const ends = { a: first, b: last, l: Math.max(first - blend, 0), r: Math.min(last + blend, end) };
      for (const part of made) for (const [name, frame] of Object.entries(ends)) part.style.setProperty(`--${name}`, this.place(frame));
      const bar = made.at(-1);
      bar.title = this.spoken(shown);
      bar.setAttribute("aria-label", `${this.spoken(shown)}. Arrows move it; Shift changes its end, Alt its fades.`);
    };
    const put = (part, by) => by && this.act("layer", number, part, by); // a change, so that no other change is lost
    const made = parts.map(([kind, part]) => {
      const element = make(kind === "clip" ? "button" : "i", { className: `tl-hit tl-${kind}` });
      element.dataset.part = part;
      this.drags(element, (to, from) => {
        Object.assign(shown, changed(part, to - from));
        element.dataset.notice = `${shown.first}–${shown.last}, fade ${shown.blend}`;
        draw();
      }, (to, from) => put(part, to - from), () => this.act("select", number));
      return element;
    });
    const bar = Object.assign(made.at(-1), { type: "button" });
    bar.dataset.id = `bar ${number}`;
    bar.onkeydown = (e) => this.arrows(e, (by) => put(e.shiftKey ? "last" : e.altKey ? "out" : "move", by));
    bar.onclick = (e) => e.detail || this.act("select", number);
    draw();
    return made;
  }
  rename(label, name, number) {
    const field = TimeLine.make("input", { type: "text", value: name, maxLength: 60, "aria-label": `New name of ${name}` });
    let open = true;
    const close = (keep) => {
      if (!open) return;
      open = false;
      const text = field.value.trim();
      field.replaceWith(label);
      label.focus();
      if (keep && text && text !== name) this.act("rename", number, text);
      if (this.later !== undefined) this.drop();
    };
    field.onblur = () => close(true);
    field.onkeydown = (e) => {
      e.stopPropagation();
      if (e.key === "Enter" || e.key === "Escape") close(e.key === "Enter");
    };
    label.replaceWith(field);
    field.select();
  }
  // A layer's name is dragged up or down to another place.
  reorders(label, number) {
    const others = () => [...this.sheet.querySelectorAll(".tl-layer,.tl-keys")];
    const slotAt = (y) => others().filter((row) => row.dataset.layer !== String(number)).filter((row) => {
      const { top, height } = row.getBoundingClientRect();
      return y < top + 0.5 * height && (row.dataset.layer !== undefined || row.dataset.row === "0");
    }).length;
    label.addEventListener("pointerdown", (e) => {
      if (!e.button) this.held = { label, y: e.clientY, moved: false };
    });
    label.addEventListener("pointermove", (e) => {
      if (this.held?.label !== label || (!this.held.moved && Math.abs(e.clientY - this.held.y) < 6)) return;
      if (!this.held.moved) label.setPointerCapture(e.pointerId);
      this.held.moved = true;
      label.closest(".tl-row").style.transform = `translateY(${e.clientY - this.held.y}px)`;
    });
    for (const end of ["pointerup", "pointercancel"])
      label.addEventListener(end, (e) => {
        const held = this.held;
        if (held?.label !== label) return;
        label.closest(".tl-row").style.transform = "";
        this.drop();
        const to = slotAt(e.clientY);
        if (held.moved && end === "pointerup" && to !== this.slot(number)) this.act("order", number, to);
      });
  }
  keys({ name, frames }, row) {
    const { make } = TimeLine;
    const marks = frames.map((frame) => {
      const mark = make("button", {
        type: "button", className: "tl-hit tl-key", title: `${name}: key at frame ${frame}`, id: `key ${row} ${frame}`, left: this.place(frame),
        "aria-label": `${name}: key at frame ${frame}. Arrows move it, with Alt a copy; Delete removes it.`,
      });
      const copies = (e) => (e.ctrlKey || e.metaKey || e.altKey ? 1 : 0);
      const put = (to, copy) => {
        const at = TimeLine.within(to, 0, this.data.last);
        this.next = `key ${row} ${at}`; // identifier of the key that gets the focus when it is shown
        if (at !== frame) this.act("key", row, frame, at, copy);
        frame = at; // the next arrow may come before the answer
      };
      this.drags(mark, (to) => {
        mark.style.left = this.place(to);
        mark.dataset.notice = to;
      }, (to, _, e) => (to === frame ? this.drop(true) : put(to, copies(e))), () => this.go(frame));
      mark.onclick = (e) => e.detail || this.go(frame);
      mark.onkeydown = (e) => {
        this.arrows(e, (by) => put(frame + by, copies({ altKey: e.altKey })));
        if (e.key !== "Delete") return;
        e.stopPropagation();
        this.act("unkey", row, frame);
      };
      return mark;
    });
    const out = this.row(row ? name : `Keys: ${name}`, this.track(...marks), "tl-keys");
    out.dataset.row = row;
    return out;
  }
  foot({ name, spans }) {
    const track = this.track(...spans.map(([first, last]) => {
      const out = TimeLine.make("i", { className: "tl-span", title: `${name} on the ground, frames ${first} to ${last}`, left: this.place(first) });
      out.style.right = `calc(100% - ${this.place(last)})`;
      return out;
    }));
    track.setAttribute("role", "img");
    const some = spans.slice(0, 12).map(([first, last]) => `${first} to ${last}`).join(", ");
    track.setAttribute("aria-label", `${name} on the ground: ${some ? `frames ${some}` : "never"}${spans.length > 12 ? " and later" : ""}`);
    return this.row(name, track, "tl-foot");
  }
  findings(all) {
    const { make } = TimeLine;
    const marks = all.flatMap(({ text, spans }, number) => spans.map(([first, last]) => {
      const mark = make("button", {
        type: "button", className: "tl-hit tl-finding", title: `${text} (frames ${first} to ${last})`, "aria-label": `${text}, frames ${first} to ${last}`,
        id: `finding ${number} ${first}`, left: this.place(first), onclick: () => this.go(first),
      });
      mark.style.width = `calc(${this.place(last - first)} + 10px)`;
      return mark;
    }));
    return this.row(`${all.length} finding${all.length > 1 ? "s" : ""}`, this.track(...marks), "tl-findings");
  }
  curve({ name, row, unit, low, high, kept, lines }) {
    const { make } = TimeLine;
    const end = Math.max(this.data.last, 1);
    const y = (value) => (94 - (88 * (value - low)) / Math.max(high - low, 1e-12)).toFixed(2);
    const path = (frames, values, look) => `<polyline class="${look}" points="${frames.map((f, i) => `${f},${y(values[i])}`).join(" ")}"/>`;
    const shown = lines.map(({ frames, values, clip, limits }, k) => `<g class="tl-ink${k}">${limits.filter((one) => one !== null && one >= low && one <= high)
      .map((one) => `<line x1="0" x2="${end}" y1="${y(one)}" y2="${y(one)}"/>`).join("")}${clip ? path(frames, clip, "tl-before") : ""}${path(frames, values, "tl-after")}</g>`);
    const track = this.track();
    track.innerHTML = `<svg viewBox="0 0 ${end} 100" preserveAspectRatio="none" aria-hidden="true">${shown.join("")}</svg>`;
    for (const [text, side] of [[high, "top"], [low, "bottom"]]) track.append(make("em", { className: `tl-${side}` }, `${Number(text.toPrecision(3))}${unit}`));
    track.setAttribute("role", "img");
    track.setAttribute("aria-label", `Curves of ${name}: ${lines.map((one) => one.text).join("; ")}. Thin lines: before the edits.`);
    const keep = this.button(kept ? "✓" : "+", `Keep the curves of ${name}`, () => this.act("keep", row), { id: `keep ${row}`, "aria-pressed": kept });
    const legend = lines.map((one, k) => make("small", { className: `tl-ink${k}`, title: one.text }, one.name || one.text));
    return this.row(make("div", { className: "tl-name" }, keep, make("span", { title: name }, name, ...legend)), track, "tl-curve");
  }
}
