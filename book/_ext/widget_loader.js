// Mounts the book's widgets in a page without a kernel: a classic script, so that it also runs from file://.
// It comes after the files of parts, which book_widgets.py writes: each adds [parts, modules] to the list mpParts.
(() => {
  "use strict";

  const files = globalThis.mpParts ?? [];
  const parts = Object.assign({}, ...files.map(([held]) => held)); // name of a part -> its text
  const modules = Object.assign({}, ...files.map(([, held]) => held)); // name of a widget -> names of its parts
  const widgets = new Map();

  function load(name) {
    if (!widgets.has(name)) widgets.set(name, importSource(name));
    return widgets.get(name);
  }

  // A Blob URL, because a browser refuses to import a module from a file:// address.
  async function importSource(name) {
    if (!Object.hasOwn(modules, name)) throw new Error(`no widget is called "${name}"`);
    const source = modules[name].map((part) => parts[part]).join("\n");
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    try {
      const { default: widget } = await import(url);
      return typeof widget === "function" ? await widget() : widget;
    } finally {
      URL.revokeObjectURL(url);
    }
  }

  // The part of anywidget's model that a view may use: get, set, save_changes, on, off.
  class Model {
    #state;
    #listeners = new Map();

    constructor(state) {
      this.#state = { ...state };
    }

    get(key) {
      return this.#state[key];
    }

    set(key, value) {
      if (typeof key === "object") {
        for (const [name, item] of Object.entries(key)) this.set(name, item);
        return;
      }
      if (Object.is(this.#state[key], value)) return;
      this.#state[key] = value;
      this.#emit(`change:${key}`, value);
      this.#emit("change");
    }

    save_changes() {} // there is no kernel to save them to

    send() {}

    on(names, listener) {
      for (const name of names.split(" ")) {
        if (!this.#listeners.has(name)) this.#listeners.set(name, new Set());
        this.#listeners.get(name).add(listener);
      }
    }

    off(names, listener) {
      if (!names) this.#listeners.clear();
      else for (const name of names.split(" ")) {
        if (listener) this.#listeners.get(name)?.delete(listener);
        else this.#listeners.delete(name);
      }
    }

    #emit(name, ...values) {
      for (const listener of [...(this.#listeners.get(name) ?? [])]) listener(...values);
    }
  }

  // On an error the static fallback stays: the widget is put in its place only once it has rendered.
  async function mount(place) {
    const name = place.dataset.mpWidget;
    try {
      const widget = await load(name);
      const model = new Model(JSON.parse(place.dataset.mpState || "{}"));
      const host = document.createElement("div");
      await widget.initialize?.({ model });
      await widget.render({ model, el: host });
      place.replaceChildren(host);
      place.dataset.mpReady = "true";
    } catch (error) {
      console.error(`The widget ${name} could not start:`, error);
      place.dataset.mpReady = "error";
    }
  }

  const mountAll = () => document.querySelectorAll("[data-mp-widget]:not([data-mp-ready])").forEach(mount);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", mountAll);
  else mountAll();
})();
