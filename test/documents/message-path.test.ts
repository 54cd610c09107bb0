import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sourceFacts } from '../architecture/source-facts.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const importsOf = (path: string) =>
  sourceFacts(path, read(path)).imports.map((name) => normalize(join(dirname(path), name)))
const areLinked = (one: string, other: string) => importsOf(one).includes(other) || importsOf(other).includes(one)
const namesIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)

interface Step {
  file: string
  name: string
  seam: string
  passes: string[]
}

const steps = read('ARCHITECTURE.md')
  .split('\n')
  .filter((line) => /^\| \d+ \|/.test(line))
  .map((line): Step => {
    const [, , where = '', seam = '', , passes = ''] = line.split('|')
    const [file = '', name = ''] = namesIn(where)
    return { file, name, seam: seam.trim(), passes: namesIn(passes) }
  })
const files = new Set(steps.flatMap(({ file, passes }) => [file, ...passes]))
const handOffs = steps.slice(1).map((step, index) => [step.file, index + 1] as const)

/**
 * Files of the core that the table names. If a step is reached by a bus event, one of these files
 * must emit the event and one must handle it.
 */
const wiring = [...files].filter((file) => file.startsWith('core/'))

/**
 * Returns true if the code of step `from` calls or notifies the code of step `to` in the way that
 * the document states. The ways are an import, an RPC method and a bus event.
 */
function isHandedOver(from: Step, to: Step, earlier: Step[]): boolean {
  const [name = ''] = namesIn(to.seam)
  if (name === '') return areLinked(from.file, to.file)
  if (to.seam.startsWith('RPC')) {
    const call = `${name.charAt(0).toLowerCase()}${name.slice(1)}(`
    const isDeclared = read('proto/service/messaging/v1/messaging.proto').includes(`rpc ${name}(`)
    return isDeclared && read(to.file).includes(call) && earlier.some(({ file }) => read(file).includes(call))
  }
  if (to.seam.startsWith('bus event')) {
    const emits = wiring.filter((file) => read(file).includes(`emit('${name}'`))
    const follows = wiring.filter((file) => read(file).includes(`on('${name}'`))
    return (
      emits.some((file) => file === from.file || areLinked(file, from.file)) &&
      follows.some((file) => file === to.file || areLinked(file, to.file))
    )
  }
  return areLinked(from.file, name) && areLinked(name, to.file)
}

describe('the table of a message’s steps in ARCHITECTURE.md', () => {
  it('the table of a message’s steps has at most 13 steps and 25 files', () => {
    expect(steps.length).toBeGreaterThan(5)
    expect(steps.length - 1).toBeLessThanOrEqual(12)
    expect(files.size).toBeLessThanOrEqual(25)
  })

  it.each([...files])('the table of a message’s steps names only existing files: %s', (file) => {
    expect(existsSync(join(root, file))).toBe(true)
  })

  it.each(steps.map(({ file, name }) => [file, name]))(
    'the table of a message’s steps names only exported functions: %s %s',
    (file, name) => {
      expect(read(file)).toMatch(new RegExp(`^export (async )?(function\\*?|const) ${name}\\b`, 'm'))
    },
  )

  it.each(handOffs)(
    'the table of a message’s steps states correctly how the previous step calls or notifies the step in %s',
    (_, index) => {
      expect(isHandedOver(steps[index - 1]!, steps[index]!, steps.slice(0, index))).toBe(true)
    },
  )

  it('the table of a message’s steps is rejected if a step does not call or notify the next step (check of the test itself)', () => {
    const [route, , , , messages] = steps
    expect(isHandedOver(route!, { ...messages!, seam: '' }, steps)).toBe(false)
    expect(isHandedOver(route!, { ...messages!, seam: 'RPC `ListMessages`' }, [route!])).toBe(false)
    expect(isHandedOver(route!, { ...messages!, seam: 'bus event `unknown`' }, steps)).toBe(false)
  })
})
