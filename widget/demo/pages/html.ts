/** Markup that is safe to send: what was put into it has been escaped. */
export interface Html {
  readonly markup: string
}

type Part = Html | string | number | undefined | false | readonly Part[]

/** A piece of a page. Text is escaped, pieces and lists of pieces are taken as they are, `undefined` and `false` are nothing. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return { markup: strings.reduce((markup, string, index) => markup + markupOf(parts[index - 1]) + string) }
}

function markupOf(part: Part): string {
  if (part === undefined || part === false) return ''
  if (typeof part === 'number') return String(part)
  if (typeof part === 'string') return escaped(part)
  if ('markup' in part) return part.markup
  return part.map(markupOf).join('')
}

const escapes: Record<string, string> = { '&': '&amp;', '"': '&quot;', "'": '&#39;', '<': '&lt;', '>': '&gt;' }

const escaped = (text: string): string => text.replaceAll(/[&"'<>]/g, (character) => escapes[character]!)
