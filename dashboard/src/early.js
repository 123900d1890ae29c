// Runs before the page is painted: the theme the user chose, so that nothing flashes; and the texts
// of the reader's language are fetched beside the scripts that will ask for them (text.js chooses
// the same way).
const theme = localStorage.getItem('perdura.theme');
if (theme)
    document.documentElement.dataset.theme = theme;
const texts = JSON.parse(document.querySelector('meta[name=texts]').content);
const code = [localStorage.getItem('perdura.language'), ...navigator.languages].filter(Boolean)
    .map((one) => one.slice(0, 2).toLowerCase()).find((one) => texts[one]) ?? 'en';
const link = document.createElement('link');
link.rel = 'modulepreload';
link.href = texts[code];
document.head.append(link);
