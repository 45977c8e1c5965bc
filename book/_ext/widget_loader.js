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
    isInPage = true; // and so the address is the widget's to read and write, where it says `linkable: false`
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

  // The address may name a state: "#bit_flip?format=bfloat16&code=0x3f80", "#bit_flip:2?..." for the second on the page.
  const places = (name) => [...document.querySelectorAll(`[data-mp-widget="${CSS.escape(name)}"]`)];

  function addressed() {
    const [name, query] = decodeURI(location.hash.slice(1)).split("?");
    if (query === undefined) return null;
    const [widget, number = "1"] = name.split(":");
    return { place: places(widget)[number - 1], query: new URLSearchParams(query) };
  }

  const kindOf = (value) => (Array.isArray(value) ? "array" : value === null ? "null" : typeof value);

  const isOwn = (trait) => trait === "solved"; // the reader's progress is no state to send

  // A state with what the address says of its traits; what has another type is left out.
  function withQuery(state, query) {
    const changed = { ...state };
    for (const [trait, text] of query) {
      if (!Object.hasOwn(state, trait) || isOwn(trait)) continue;
      try {
        const value = typeof state[trait] === "string" ? text : JSON.parse(text);
        if (kindOf(value) === kindOf(state[trait])) changed[trait] = value;
      } catch { /* not JSON: left out */ }
    }
    return changed;
  }

  const LONGEST = 300; // characters of a trait in an address: tables and curves are no state to send
  const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));

  // The address of what the reader has made of a widget; the page's own where that is what the page shows.
  function linkTo(place, model, initial) {
    const state = Object.keys(initial).filter((trait) => !isOwn(trait) && JSON.stringify(model.get(trait)) !== JSON.stringify(initial[trait]))
      .map((trait) => [trait, asText(model.get(trait))]).filter(([, text]) => text?.length <= LONGEST);
    const name = place.dataset.mpWidget;
    const number = places(name).indexOf(place) + 1;
    return `${location.href.split("#")[0]}#${name}${number > 1 ? `:${number}` : ""}?${new URLSearchParams(state)}`;
  }

  function linkButton(place, model, initial) {
    const button = document.createElement("button");
    const says = "Copy a link to this state";
    Object.assign(button, { type: "button", className: "mp-state-link", textContent: "link", ariaLabel: says, title: says });
    button.addEventListener("click", async () => {
      const link = linkTo(place, model, initial);
      const worked = await use("shared/page/elements").copyText(link, button);
      button.textContent = worked ? "copied" : "in the address";
      if (!worked) history.replaceState(history.state, "", link);
      button.ariaLabel = worked ? "The link is copied" : "The link is in the address of the page";
      setTimeout(() => Object.assign(button, { textContent: "link", ariaLabel: says }), 3000);
    });
    return button;
  }

  // Not so a widget with an address of its own, and one whose state is nobody else's.
  const isLinkable = ({ linkable = true }) => linkable;

  // On an error the static fallback stays: the widget is put in its place only once it has rendered.
  const ends = new WeakMap();

  async function renderAt(place, widget, state, initial) {
    const model = new Model(state);
    const host = document.createElement("div");
    const end = await widget.render({ model, el: host });
    ends.get(place)?.();
    ends.set(place, end);
    place.replaceChildren(host, ...(isLinkable(widget) ? [linkButton(place, model, initial)] : []));
    place.dataset.mpReady = "true";
  }

  async function mount(place) {
    const name = place.dataset.mpWidget;
    try {
      const widget = widgetCalled(name);
      const initial = JSON.parse(place.dataset.mpState || "{}");
      const named = addressed();
      if (named?.place === place && isLinkable(widget)) {
        try {
          return await renderAt(place, widget, withQuery(initial, named.query), initial);
        } catch { /* a state that the widget does not know: the page's own */ }
      }
      await renderAt(place, widget, initial, initial);
    } catch (error) {
      console.error(`The widget ${name} could not start:`, error);
      place.dataset.mpReady = "error";
    }
  }

  // A link on the page to a state of one of its widgets.
  async function follow() {
    const place = addressed()?.place;
    if (!place?.dataset.mpReady) return;
    if (isLinkable(widgetCalled(place.dataset.mpWidget))) await mount(place);
    place.scrollIntoView();
  }

  async function mountAll() {
    await Promise.all([...document.querySelectorAll("[data-mp-widget]:not([data-mp-ready])")].map(mount));
    addressed()?.place?.scrollIntoView();
  }
  addEventListener("hashchange", follow);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", mountAll);
  else mountAll();
})();
