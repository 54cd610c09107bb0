import { expect, it } from 'vitest'
import { rules } from './rules.ts'

const tested = new Map<string, number>()

/** A test of one rule, named after it. A rule may have several: then each says what it looks at. */
export function rule(id: string, run: () => Promise<void>, detail?: string): void {
  const found = rules.find((each) => each.id === id)
  if (found === undefined) throw new Error(`there is no rule ${id}`)
  tested.set(id, (tested.get(id) ?? 0) + 1)
  it(`${id} ${found.sentence}${detail === undefined ? '' : ` (${detail})`}`, run)
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
