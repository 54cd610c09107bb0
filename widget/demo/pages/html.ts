/** Markup whose text is already escaped. */
export interface Html {
  readonly markup: string
}

type Part = Html | string | number | undefined | false | readonly Part[]

/**
 * Template tag that builds markup. Escapes text, inserts `Html` and lists unchanged, and omits
 * `undefined` and `false`.
 */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return { markup: strings.reduce((markup, string, index) => markup + render(parts[index - 1]) + string) }
}

function render(part: Part): string {
  if (part === undefined || part === false) return ''
  if (typeof part === 'number') return String(part)
  if (typeof part === 'string') return part.replaceAll(/[&"'<>]/g, (character) => `&#${character.charCodeAt(0)};`)
  return 'markup' in part ? part.markup : part.map(render).join('')
}
