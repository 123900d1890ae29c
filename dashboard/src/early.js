// Runs before the page is painted: the theme somebody chose, so that nothing flashes.
const theme = localStorage.getItem('perdura.theme');
if (theme)
    document.documentElement.dataset.theme = theme;
