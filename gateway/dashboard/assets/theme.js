// This script runs before the page is painted, so that a theme which the viewer has chosen does not flash.
try {
  const theme = localStorage.getItem('theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch { /* storage is blocked: the system's theme it is */ }
