// Mounts the book's widgets in a page without a kernel: a classic script, so that it also runs from file://.
// It comes after the scripts that book_widgets.py writes: each adds an object of functions to the list mpParts, one for
// each JavaScript file of its widgets, which returns what the file exports.
(() => {
  "use strict";

  const parts = Object.assign({}, ...(globalThis.mpParts ?? []));
  const made = {};
  const use = (name) => (made[name] ??= parts[name](use));

  function widgetCalled(name) {
    if (!Object.hasOwn(parts, `${name}/widget`)) throw new Error(`no widget is called "${name}"`);
    return use(`${name}/widget`).default;
  }

  // The part of anywidget's model that a view may use: get, set, save_changes, on, off.
  class Model {
    isInPage = true; // and so the address is the widget's to read and write
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
      const widget = widgetCalled(name);
      const model = new Model(JSON.parse(place.dataset.mpState || "{}"));
      const host = document.createElement("div");
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
