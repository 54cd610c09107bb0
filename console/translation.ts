import { type Plugin, parseSync, Visitor } from 'vite'
import german from './src/languages/de.json' with { type: 'json' }

interface SourceText {
  /** The English text, with `{0}`, `{1}`, … for its values. */
  key: string
  /** What takes the place of the text, so that the operator sees it in the chosen language. */
  edits: { start: number; end: number; code: string }[]
}

const codeProp = /\b(class|rel|accept|autocomplete|icon|kind|href|id|key|d|viewBox|type|role|view|tone|shape|position)$/

/** Returns what may be a text on a screen. A single lower-case word counts only in an element or a prop. */
export function textsIn(path: string, source: string): SourceText[] {
  const texts: SourceText[] = []
  const call = (text: string) => `translateText(${JSON.stringify(text)}`
  function add(text: string, edits: SourceText['edits']) {
    const key = text.trim()
    if (/\p{L}{2}/u.test(key.replace(/\{\d\}/g, ''))) texts.push({ key, edits })
  }
  new Visitor({
    JSXText({ start, end, value }) {
      const text = value.replace(/^\s*\n\s*|\s*\n\s*$/g, '').replace(/\s*\n\s*/g, ' ')
      add(text, [{ start, end, code: `{${call(text)})}` }])
    },
    Literal({ start, end, value }) {
      if (typeof value !== 'string') return
      const before = source.slice(0, start)
      if (before.endsWith('=')) {
        if (!codeProp.test(before.slice(0, -1))) add(value, [{ start, end, code: `{${call(value)})}` }])
      } else if (/^[A-Z“(]|\s/.test(value) && !/([!=]==|case) $/.test(before) && source[end] !== ':')
        add(value, [{ start, end, code: `${call(value)})` }])
    },
    TemplateLiteral({ start, end, quasis, expressions }) {
      const text = quasis.map(({ value }, index) => (index ? `{${index - 1}}` : '') + value.cooked).join('')
      const edits = [...expressions, undefined].map((next, index) => ({
        start: expressions[index - 1]?.end ?? start,
        end: next?.start ?? end,
        code: (index ? '' : call(text)) + (next ? ', ' : ')'),
      }))
      add(text, edits)
    },
  }).visit(parseSync(path, source).program)
  return texts
}

/** Replaces each text that has a translation with a call that returns it in the language of the operator. */
export const translateTexts = (): Plugin => ({
  name: 'translate-texts',
  enforce: 'pre',
  transform(source, id) {
    if (!/\/console\/src\/.*\.tsx?$/.test(id)) return
    const edits = textsIn(id, source).flatMap(({ key, edits }) => (key in german ? edits : []))
    if (edits.length === 0) return
    return edits
      .sort((one, other) => other.start - one.start)
      .reduce(
        (code, { start, end, code: by }) => code.slice(0, start) + by + code.slice(end),
        `${source}\nimport { translate as translateText } from '/src/language.ts'\n`,
      )
  },
})
