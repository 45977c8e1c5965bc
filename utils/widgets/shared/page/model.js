// A widget and its model: the traits that Python and the page share.

/** What the traits of these names hold: { trait: value }. */
export const readTraits = (model, traits) => Object.fromEntries(traits.map((trait) => [trait, model.get(trait)]));

/**
 * Tie a widget to its model, until the signal ends it. `follow(trait)` is called when one of the traits changed
 * elsewhere. Returns save(change), which gives the model what the reader changed: { trait: value }.
 */
export function bindModel(model, traits, follow, signal) {
  let writing = false;
  for (const trait of traits) {
    const heard = () => {
      if (!writing) follow(trait);
    };
    model.on(`change:${trait}`, heard);
    signal.addEventListener("abort", () => model.off(`change:${trait}`, heard));
  }
  return (change) => {
    writing = true;
    for (const [trait, value] of Object.entries(change)) model.set(trait, value);
    model.save_changes();
    writing = false;
  };
}

/** The actions of a widget with sliders: drag(change) saves and draws what is new, set(change) also says the result. */
export function dragActions({ model, save, draw, speak }) {
  function drag(change) {
    if (Object.entries(change).every(([trait, value]) => model.get(trait) === value)) return;
    save(change);
    draw();
  }
  return {
    speak,
    drag,
    set(change) {
      drag(change);
      speak();
    },
  };
}
