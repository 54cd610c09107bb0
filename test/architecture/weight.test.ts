import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync, Visitor } from 'vite'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

/**
 * The most that each side may weigh: lines of all product files, and tokens of its TypeScript. To raise a
 * limit, write a line in docs/decisions.md that says what the product gets for it. To lower one is always
 * right. The aims are 43,500 lines for the server and 26,000 for the browser.
 */
const sides = {
  server: {
    folders: ['core', 'gateway', 'delivery', 'core-client', 'contract', 'platform', 'serve', 'dev', 'admin'],
    limits: { lines: 43_900, tokens: 297_800 },
  },
  browser: {
    folders: ['widget', 'console', 'browser', 'webhooks'],
    limits: { lines: 25_800, tokens: 139_700 },
  },
}

const isProduct = (path: string) =>
  !/\.test\.tsx?$|(^|\/)(test|gen|dist|released|node_modules)\/|^webhooks\/src\/event-kinds\.ts$/.test(path)

/** A word, a number or one operator. Other tokens are taken from the syntax tree. */
const word =
  /[\p{ID_Start}\p{N}$_#@][\p{ID_Continue}$]*|[=!]==?|=>|\?\?=?|\?\.|&&=?|\|\|=?|\*\*=?|\.{3}|[-+*/%<>&|^]=?|\S/gu

/** Counts the tokens of a file without its comments and imports. A literal is one token. */
function tokensIn(path: string, source: string): number {
  const { program, comments, errors } = parseSync(path, source)
  if (errors[0]) throw new Error(`${path}: ${errors[0].message}`)
  const imports = program.body.filter(({ type }) => type === 'ImportDeclaration')
  const spans = [...comments, ...imports].map(({ start, end }) => ({ start, end, tokens: 0 }))
  const literal = ({ start, end }: { start: number; end: number }) => void spans.push({ start, end, tokens: 1 })
  new Visitor({ Literal: literal, TemplateElement: literal, JSXText: literal }).visit(program)
  let tokens = 0
  let at = 0
  for (const span of spans.sort((one, other) => one.start - other.start)) {
    // The names of imported modules are inside of the imports.
    if (span.start < at) continue
    tokens += (source.slice(at, span.start).match(word)?.length ?? 0) + span.tokens
    at = span.end
  }
  return tokens + (source.slice(at).match(word)?.length ?? 0)
}

function weightOf(folders: string[]) {
  const paths = globSync(`{${folders.join(',')}}/**/*.{ts,tsx,js,mjs,css,proto,html}`, { cwd: root }).filter(isProduct)
  const files = paths.map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
  return {
    lines: files.reduce((sum, { text }) => sum + text.split('\n').length - 1, 0),
    tokens: files
      .filter(({ path }) => /\.tsx?$/.test(path))
      .reduce((sum, { path, text }) => sum + tokensIn(path, text), 0),
  }
}

describe('the product', () => {
  it.each(Object.entries(sides))('on the side of the %s is not heavier than its limits', (_, { folders, limits }) => {
    const { lines, tokens } = weightOf(folders)
    expect(lines, 'lines; raise the limit only with a line in docs/decisions.md').toBeLessThanOrEqual(limits.lines)
    expect(tokens, 'tokens; raise the limit only with a line in docs/decisions.md').toBeLessThanOrEqual(limits.tokens)
  })

  it('is counted without comments and imports, and with each literal once', () => {
    const source = `import a from 'a'\n// no\nconst b = \`ü \${a.c} y\` /* no */ + 'a b' + /a b/u\n`
    // const, b, =, the template up to its value, a, ., c, the rest of the template, +, 'a b', +, /a b/u
    expect(tokensIn('a.ts', source)).toBe(12)
  })
})
