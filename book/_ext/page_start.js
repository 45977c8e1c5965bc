// Before anything is painted: the theme that the reader's system asks for, which the theme's own script sets after the
// first painting, and the fonts inside the style sheets, which a browser would unpack as it sets the first line.
{
  const { dataset } = document.documentElement;
  if (dataset.theme === "auto") {
    dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  document.fonts.forEach((face) => face.load());
}
