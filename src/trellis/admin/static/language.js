// Texts in the language of the page. The code contains them in English, as whole sentences. The translations for another language are
// fetched once, from an address beside this script. A text without a translation stays in English.
export const lang = document.documentElement.lang || "en";
const texts = lang === "en" ? {} : await load();
const forms = new Intl.PluralRules(lang);

async function load() {
  try {
    const response = await fetch(new URL(`texts-${lang}.json`, import.meta.url));
    return response.ok ? await response.json() : {};
  } catch {
    return {};
  }
}

// Numbers are formatted for the language: t("{count} selected", { count }).
const show = (value) => (typeof value === "number" ? value.toLocaleString(lang) : String(value));
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? show(values[name]) : whole));

export const t = (text, values = {}) => fill(texts[text] ?? text, values);

export function many(count, one, several, values = {}) {
  const form = texts[several]?.[forms.select(count)] ?? (count === 1 ? one : several);
  return fill(form, { count, ...values });
}
