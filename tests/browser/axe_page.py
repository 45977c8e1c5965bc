"""axe in a page: what is serious, and a way to judge the colours of a long page in a tenth of the time.

Colours take most of axe's time, and a page of code has thousands of texts in a few dozen colours. `MARK` picks one text
of each kind: of one colour, size, weight and ground. The ground is what the text's ancestors paint; a text that is
positioned and covers nothing may lie on another one, so each of these is picked. Of links it picks one of each kind in
a paragraph of each kind: it is compared with the text around it.
"""

from axe_playwright_python.sync_playwright import Axe

# preload: axe would fetch the style sheets again; resultTypes: what it says of kept rules takes as long as the rules;
# rules: those that find nothing worse than a moderate fault, such as one on landmarks, take a quarter of the time
SERIOUS = """
() => {
  const mild = axe._audit.rules.filter(({ impact }) => ["minor", "moderate"].includes(impact));
  const rules = Object.fromEntries(mild.map(({ id }) => [id, { enabled: false }]));
  return axe.run(document, { preload: false, resultTypes: ["violations"], rules }).then(({ violations }) =>
    violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)}\\n   ${failureSummary}`)));
}
"""
MARK = r"""
() => {
  const grounds = new Map([[null, ""]]);
  const ground = (element) => {
    if (!grounds.has(element)) {
      const { backgroundColor, backgroundImage, opacity, filter } = getComputedStyle(element);
      const own = [backgroundColor, backgroundImage, opacity, filter].join();
      const nothing = "rgba(0, 0, 0, 0),none,1,none";
      grounds.set(element, ground(element.parentElement) + (own === nothing ? "" : `${own};`));
    }
    return grounds.get(element);
  };
  const lifted = new Map([[null, false]]);
  const isLifted = (element) => {
    if (!lifted.has(element)) {
      const { position, backgroundColor } = getComputedStyle(element);
      const own = ["absolute", "fixed", "sticky"].includes(position);
      const covers = /^rgb\(/.test(backgroundColor); // without a fourth number it lets nothing through
      lifted.set(element, !covers && (own || isLifted(element.parentElement)));
    }
    return lifted.get(element);
  };
  const holdsText = (element) => element.matches("input, select, textarea") ||
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const shortest = new Map(); // of each kind; a text of many lines takes axe longer
  const keep = (kind, element, text) => {
    if (!shortest.has(kind) || text.length < shortest.get(kind).text.length) shortest.set(kind, { element, text });
  };
  for (const element of document.body.querySelectorAll("*")) {
    element.removeAttribute("data-one-of-its-kind");
    if (!holdsText(element) || element.closest(".katex-mathml")) continue; // what is only read aloud has no colour
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const { color, fontSize, fontWeight, textShadow } = getComputedStyle(element);
    const kind = [color, fontSize, fontWeight, textShadow, ground(element)].join("|");
    if (isLifted(element)) element.setAttribute("data-one-of-its-kind", "");
    else keep(kind, element, element.textContent);
  }
  for (const { element } of shortest.values()) element.setAttribute("data-one-of-its-kind", "");
  const looks = (element) => {
    const { color, fontWeight, fontStyle, fontSize, textDecoration, borderBottom, backgroundColor, backgroundImage } =
      getComputedStyle(element);
    return [element.tagName, color, fontWeight, fontStyle, fontSize, textDecoration, borderBottom, backgroundColor,
      backgroundImage].join();
  };
  shortest.clear();
  for (const link of document.querySelectorAll("a[href]")) {
    link.removeAttribute("data-one-link-of-its-kind");
    if (!link.checkVisibility({ visibilityProperty: true })) continue;
    const kind = [link, ...link.children, link.parentElement, link.parentElement.parentElement].map(looks).join("|");
    keep(kind, link, link.parentElement.textContent);
  }
  for (const { element } of shortest.values()) element.setAttribute("data-one-link-of-its-kind", "");
  axe.configure({ rules: [
    { id: "color-contrast", selector: "[data-one-of-its-kind]" },
    { id: "link-in-text-block", selector: "a[href][data-one-link-of-its-kind]" },
  ] });
}
"""
# A piece of code is a hundred elements of a few colours, and a formula as many boxes that no one reads aloud; axe looks
# what lies over each. What is not to be judged stands there as bare text, and each piece of a formula as its strut and
# one box of its width, so that nothing moves. So does the MathML that is only read aloud.
FLATTEN = """
() => {
  const judged = "[data-one-of-its-kind], [data-one-link-of-its-kind]";
  const holds = (node) => node.nodeType === Node.ELEMENT_NODE && (node.matches(judged) || node.querySelector(judged));
  const flat = [...document.querySelectorAll("pre")].map((pre) =>
    [pre, [...pre.childNodes].map((node) => holds(node) ? node : node.textContent)]);
  flat.push(...[...document.querySelectorAll(".katex-mathml")].map((spoken) => [spoken, [spoken.textContent]]));
  const pieces = [...document.querySelectorAll('.katex-html[aria-hidden="true"] > .base')];
  const bare = pieces.filter((part) => !holds(part));
  for (const [part, { width }] of bare.map((part) => [part, part.getBoundingClientRect()])) {
    const box = document.createElement("span");
    box.style.cssText = `display: inline-block; width: ${width}px`;
    flat.push([part, [part.querySelector(":scope > .strut"), box]]);
  }
  const kept = flat.map(([element]) => [element, [...element.childNodes]]);
  for (const [element, nodes] of flat) element.replaceChildren(...nodes);
  window.unflatten = () => kept.forEach(([element, nodes]) => element.replaceChildren(...nodes));
}
"""
UNFOLD = """
() => {
  for (const box of document.querySelectorAll("details:not([open])")) box.open = true;
}
"""
SETTLE = """
() => {
  for (const motion of document.getAnimations()) motion.finish(); // a text that fades in has no contrast yet
}
"""


def start(page):
    """Load axe into the page, past its policy."""
    page.evaluate(Axe().axe_script)


def serious(page):
    """What axe finds serious or critical, colours judged on one text of each kind; one line for each element."""
    page.evaluate(MARK)
    page.evaluate(FLATTEN)
    try:
        return page.evaluate(SERIOUS)
    finally:
        page.evaluate("unflatten()")


def serious_of_all(page):
    """The same with every text judged by itself, in a page whose texts were not marked before."""
    return page.evaluate(SERIOUS)


def unfold(page):
    """Open all that is folded, for what is not shown is not judged."""
    page.evaluate(UNFOLD)
    settle(page)


def settle(page):
    """Let every motion end at once: while a text fades in or changes its colour, its contrast is not the last one."""
    page.evaluate(SETTLE)
