// Elements with listeners that go away together, their text, and the clipboard.

/** Make elements: h("button", { class: "mp-button", on: { click } }, "text"). Listeners end with the signal. */
export function elements(signal) {
  return function h(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "on") {
        for (const [type, listener] of Object.entries(value)) node.addEventListener(type, listener, { signal });
      } else if (name === "style") node.style.cssText = value; // as an attribute, the page's policy would refuse it
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value !== undefined && value !== null) node.setAttribute(name, value);
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
  };
}

/** Set a node's text if it differs, so that a live region does not speak twice. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Copy text; true if it worked. file:// pages may have no clipboard, hence the older way. */
export async function copyText(text, near) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.style.cssText = "position:fixed;opacity:0";
    near.append(field);
    field.select();
    const worked = document.execCommand("copy");
    field.remove();
    near.focus();
    return worked;
  }
}
