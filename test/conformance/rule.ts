import { expect, it } from 'vitest'
import { rules } from './rules.ts'

const tested = new Map<string, number>()

type Test = (id: string, run: () => Promise<void>, detail?: string) => void

/** A test of one rule, named after it. A rule may have several: then each says what it looks at. */
export const rule: Test = (id, run, detail) => void it(nameOf(id, detail), run)

/** As `rule`, at the same time as its neighbours of this kind: for those that wait for time to go by. */
export const concurrentRule: Test = (id, run, detail) => void it.concurrent(nameOf(id, detail), run)

function nameOf(id: string, detail: string | undefined): string {
  const found = rules.find((each) => each.id === id)
  if (found === undefined) throw new Error(`there is no rule ${id}`)
  tested.set(id, (tested.get(id) ?? 0) + 1)
  return `${id} ${found.sentence}${detail === undefined ? '' : ` (${detail})`}`
}

/** The last test: prints the rules with their tests, and fails when one has none. */
export function everyRuleIsTested(): void {
  it('each rule has a test', () => {
    const states = rules.map(({ id, section, sentence }) => {
      const count = tested.get(id) ?? 0
      const state = count > 0 ? `${count} test${count === 1 ? '' : 's'}` : 'NO TEST'
      return { id, line: `${id.padEnd(28)} ${state.padEnd(22)} ${sentence} [${section}]`, state }
    })
    console.info(states.map(({ line }) => line).join('\n'))
    expect(states.filter(({ state }) => state === 'NO TEST').map(({ id }) => id)).toEqual([])
  })

  it('each rule has one name', () => {
    expect(new Set(rules.map(({ id }) => id)).size).toBe(rules.length)
  })
}
