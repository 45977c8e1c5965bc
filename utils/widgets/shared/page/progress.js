// Progress in goals and exercises, which the browser keeps.

const progressKey = (id) => `mp-progress:${id}`;

/** Progress in one goal or exercise, from an earlier visit: { solved, hints }. Key: "mp-progress:<id>". */
export function readProgress(id) {
  try {
    return { solved: false, hints: 0, ...JSON.parse(localStorage.getItem(progressKey(id)) ?? "{}") };
  } catch {
    return { solved: false, hints: 0 }; // storage is off or holds something else: the page works, and forgets
  }
}

export function writeProgress(id, progress) {
  try {
    localStorage.setItem(progressKey(id), JSON.stringify(progress));
  } catch { /* as above */ }
  dispatchEvent(new Event("mp-progress")); // for what counts it on this page; other tabs get "storage"
}

export function forgetProgress(id) {
  try {
    localStorage.removeItem(progressKey(id));
  } catch { /* as above */ }
  dispatchEvent(new Event("mp-progress"));
}
