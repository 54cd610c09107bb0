import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkSync } from 'recheck'
import { parseSync, Visitor } from 'vite'

const root = join(import.meta.dirname, '../..')

/** Folders whose code reads texts of strangers. Tests and build scripts are left out. */
const sources = [
  '{gateway,core,core-client,contract,delivery,platform,admin,webhooks/src}/**/*.{ts,js}',
  '{browser,widget/src,console/src}/**/*.{ts,tsx}',
  'docs/examples/**/*.{ts,js}',
]

/** Expressions that need not be linear, with the reason. */
const exempt: Record<string, string> = {
  '/<script[^>]*>([\\s\\S]*?)<\\/script>/g': 'reads HTML of an npm package',
  '/\\/+$/': 'reads the option `apiBaseUrl` of the host page',
  '/[-.][\\w-]{8}\\.\\w{1,8}$|^widget\\/v1\\/[0-9a-f]{16}\\//': 'every part has a maximum length',
}

/** Returns each regular expression literal of the sources once, in alphabetical order. */
export function sourceExpressions(): string[] {
  const paths = globSync(sources, { cwd: root }).filter((path) => !/\.test\.tsx?$|\/test\//.test(path))
  const found = paths.flatMap((path) => expressionsIn(path, readFileSync(join(root, path), 'utf8')))
  return [...new Set(found)].filter((each) => exempt[each] === undefined).sort()
}

function expressionsIn(path: string, source: string): string[] {
  const found: string[] = []
  const visitor = new Visitor({
    Literal(node) {
      if ('regex' in node) found.push(`/${node.regex.pattern}/${node.regex.flags}`)
    },
  })
  visitor.visit(parseSync(path, source).program)
  return found
}

/** Time in milliseconds after which the check of one expression gives up. */
const timeout = 60_000

/** Returns `safe` if the expression takes linear time for every text, else a text that shows the problem. */
export function checkExpression(expression: string): string {
  const end = expression.lastIndexOf('/')
  const result = checkSync(expression.slice(1, end), expression.slice(end + 1), { timeout })
  if (result.status === 'vulnerable') return `${result.complexity.summary}: ${result.attack.pattern}`
  return result.status
}
