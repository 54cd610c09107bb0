import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const pathOf = (file: string) => join(import.meta.dirname, '../..', file)

export const readProjectFile = (file: string) => readFileSync(pathOf(file), 'utf8')
export const writeProjectFile = (file: string, content: string) => writeFileSync(pathOf(file), content)

/** Replaces the rows of the table with this head that follows `after`. */
export function withRows(document: string, head: string, rows: string[], after = ''): string {
  const begin = document.indexOf(`\n| ${head} |\n`, document.indexOf(after))
  if (begin < 0) throw new Error(`no table has the head ${head}`)
  const [empty = '', ...lines] = document.slice(begin).split('\n')
  const rest = lines.slice(lines.findIndex((line) => !line.startsWith('|')))
  return document.slice(0, begin) + [empty, ...lines.slice(0, 2), ...rows, ...rest].join('\n')
}

/** Replaces what stands between two texts. */
export function between(document: string, before: string, after: string, content: string): string {
  const [head, rest] = document.split(before, 2)
  if (rest === undefined) throw new Error(`the document lacks ${before}`)
  return `${head}${before}${content}${rest.slice(rest.indexOf(after))}`
}
