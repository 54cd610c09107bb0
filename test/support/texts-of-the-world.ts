/** What people write, and what must be stored as it is, except for line ends. */
export const corpus = [
  'Grüße, ça va? Ĳsland ß ẞ ſ ŉ',
  'مرحبا، ٠١٢٣٤٥٦٧٨٩ ۰۱۲۳ «نعم»؟ \u202bעברית שָׁלוֹם\u202c \u200f',
  'हिन्दी क्षत्रिय ১২৩ தமிழ் ไทย ๑๒๓ ខ្មែរ မြန်မာ ພາສາລາວ བོད',
  '日本語。「はい」！？ ｶﾞ か\u3099 漢\u{e0100} 𠮷野家 简体，繁體、 한국어 \u1112\u1161\u11ab',
  'e\u0301 é \u0065\u0323\u0307 Ω Ω Å Å ﬁ ½ ² ①',
  '👩‍👩‍👧‍👦 👍🏽 🇦🇹 🏴󠁧󠁢󠁳󠁣󠁴󠁿 ❤️ ☎︎ #️⃣ 🫱🏻‍🫲🏿',
  '\u00a0no\u00adbreak\u2011\u2060\u200bspace\u2009thin\u3000wide\tTab  two ',
  'İstanbul ıI Ǆ ΣΊΣΥΦΟΣ ᏣᎳᎩ 𞤀𞤣𞤤𞤢𞤥 𐐀 ᚠᚢᚦ',
  `<b>&amp;</b> "'\` $& $1 %s %00 \\0 {{x}} \${x} __proto__ ../`,
  'https://a.example/b。 https://例え.テスト/道？ (https://a.example/ü)、',
]
/** Every line end that people paste. */
export const lineEnds = ['\r\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029', '\n', '\n', '\r\r']
/** All texts, each with another line end. */
export const pasted = corpus.map((text, index) => `${text}${lineEnds[index]}`).join('')
/** The same as it is stored. */
export const stored = corpus
  .map((text, index) => `${text}${lineEnds[index]!.length > 1 && index > 0 ? '\n\n' : '\n'}`)
  .join('')

/** One telephone number, as people of several scripts write it. */
export const phones = [
  '+٩٦٦ ٥٠ ١٢٣ ٤٥٦٧',
  '+۹۶۶ ۵۰ ۱۲۳ ۴۵۶۷',
  '+९६६ ५० १२३ ४५६७',
  '＋９６６（５０）１２３４５６７',
  '\u202d+966\u00a050\u2011123\u20114567\u202c',
  'tel:+966-50-123-4567',
  '☎️ 00966 (0)50 · 123.45/67',
]
