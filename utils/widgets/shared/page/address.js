// A widget's state in the address of the page, after the "#": "#playground?weights=bfloat16&seed=3".

/** The state that the address names for a widget, { name: text }, or null. */
export function readAddress(widget, hash = location.hash) {
  const [name, query] = decodeURI(hash.slice(1)).split("?");
  return name === widget && query !== undefined ? Object.fromEntries(new URLSearchParams(query)) : null;
}

/** The part of an address from "#" on that names a state; an empty state gives no query. */
export const addressOf = (widget, state) => `#${widget}?${new URLSearchParams(state)}`;

/** Put a state into the page's address, without a new entry in its history; null for the one that the page begins with. */
export function writeAddress(widget, state) {
  history.replaceState(history.state, "", state ? addressOf(widget, state) : location.pathname + location.search);
}

/** The whole address of a state. */
export const linkTo = (widget, state) => `${location.href.split("#")[0]}${addressOf(widget, state)}`;
