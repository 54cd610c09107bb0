import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync, Visitor } from 'vite'
import { expect, it } from 'vitest'
import german from '../../console/src/languages/de.json' with { type: 'json' }

const root = join(import.meta.dirname, '../..')
const glossary = readFileSync(join(root, 'docs/glossary.md'), 'utf8')
const section = glossary.split('## Words on screens')[1]!
/** The words of the first column: each stands for itself and its plural. */
const unwanted = [...section.matchAll(/^\| ([a-z ]+) \|/gm)].map(([, word]) => word!)

/** Returns the texts of a file that may be on a screen: sentences and labels, no ids and no paths. */
function textsOf(path: string): string[] {
  const { program } = parseSync(path, readFileSync(join(root, path), 'utf8'))
  const texts: string[] = []
  const isText = (text: string) => /^\s*[A-Z]|\S\s+\S/.test(text)
  new Visitor({
    Literal: ({ value }) => void (typeof value === 'string' && isText(value) && texts.push(value)),
    TemplateElement: ({ value }) => void (isText(value.raw) && texts.push(value.raw)),
    JSXText: ({ value }) => void texts.push(value),
  }).visit(program)
  return texts
}

it('no screen of the console and of the widget says a word that the glossary keeps from screens', () => {
  expect(unwanted.length).toBeGreaterThan(4)
  const word = new RegExp(`\\b(${unwanted.join('|')})s?\\b`, 'i')
  const paths = globSync(['console/src/**/*.{ts,tsx}', 'widget/src/ui/languages/*.ts'], { cwd: root })
  const found = paths
    .filter((path) => !path.includes('.test.'))
    .flatMap((path) =>
      textsOf(path)
        .filter((text) => word.test(text))
        .map((text) => `${path}: ${text.trim()}`),
    )
  expect(found).toEqual([])
})

it.each([
  ['enabled or disabled', /\b(en|dis)abled?\b/i, /schalt/i],
  ['waiting', /\bdeliver(y|ies) wait|^waiting( deliveries|:)|^# waiting/i, /warte/i],
])('the German text for a thing that is %s uses the word of the glossary', (_, english, word) => {
  const found = Object.entries(german).filter(([text]) => english.test(text))
  expect(found.length).toBeGreaterThan(2)
  expect(found.filter(([, text]) => !word.test(text))).toEqual([])
})
