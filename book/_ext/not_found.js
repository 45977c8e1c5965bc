// The page for an address that leads nowhere: finds where the site begins, and the page that was meant.
(async () => {
  const root = document.documentElement;
  let mode = "auto";
  try {
    mode = localStorage.getItem("theme") || "auto";
  } catch { /* nothing is stored */ }
  const isDark = mode === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : mode === "dark";
  root.dataset.theme = isDark ? "dark" : "light";

  // The folders in which the site may lie, the likeliest first: each of its inner addresses shows it.
  function folders(path) {
    const inner = path.search(/\/(book|_sources|_static|_images|_downloads)\//);
    if (inner >= 0) return [path.slice(0, inner + 1)];
    const slashes = [...path].flatMap((letter, at) => (letter === "/" ? [at] : []));
    return slashes.reverse().map((at) => path.slice(0, at + 1));
  }

  async function siteFolder() {
    const { site } = document.body.dataset;
    if (site && location.href.startsWith(site)) return new URL(site).pathname;
    const [likeliest, ...others] = folders(location.pathname);
    if (!others.length || location.protocol === "file:") return likeliest;
    for (const folder of [likeliest, ...others]) {
      const answer = await fetch(`${folder}objects.inv`, { method: "HEAD" }).catch(() => ({ ok: false }));
      if (answer.ok) return folder;
    }
    return likeliest;
  }

  const pairs = (word) => new Set([...word].slice(1).map((letter, at) => word[at] + letter));
  function likeness(one, other) { // Dice's coefficient of the pairs of letters: 0 to 1
    const [mine, yours] = [pairs(one), pairs(other)];
    const common = [...mine].filter((pair) => yours.has(pair)).length;
    return mine.size + yours.size ? (2 * common) / (mine.size + yours.size) : 0;
  }
  const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
  const stem = (path) => plain(path.replace(/\/$/, "").split("/").pop().replace(/\.\w+$/, ""));
  const part = (path) => plain(path.split("/").slice(-2, -1)[0] ?? "");

  const folder = await siteFolder();
  const links = [...document.querySelectorAll("main a")];
  const pages = links.map((link) => link.getAttribute("href").slice(document.body.dataset.site.length));
  links.forEach((link, at) => { link.href = folder + pages[at]; });
  const form = document.querySelector("form");
  form.action = `${folder}search.html`;
  root.dataset.ready = "true";

  const asked = decodeURIComponent(location.pathname).slice(folder.length);
  const wanted = stem(asked);
  if (!wanted || wanted === "404") return;
  form.q.value = wanted;
  const scores = links.map((link, at) => link.closest("nav")
    ? Math.max(likeness(wanted, stem(pages[at])), likeness(wanted, plain(link.textContent)))
      + likeness(part(asked), part(pages[at])) / 4 : 0);
  const best = scores.indexOf(Math.max(...scores));
  if (scores[best] < 0.6) return;
  const likely = document.querySelector(".likely");
  const link = Object.assign(document.createElement("a"), { href: links[best].href, textContent: links[best].textContent });
  likely.append("It may be this one: ", link);
  likely.hidden = false;
})();
