// Sets the chosen theme before the first paint. Without a choice the page follows
// the system. Not a module: those run after the first paint.
'use strict';
{
  let theme = null;
  try {
    theme = localStorage.getItem('timecached.theme');
  } catch {
    // Storage is turned off: follow the system.
  }
  if (theme === 'dark' || theme === 'light') {
    document.documentElement.dataset.theme = theme;
  }
}
