import { expect, it, type TestContext } from 'vitest'
import { MissingAccess } from './missing-access.ts'
import { rules } from './rules.ts'

const tested = new Map<string, number>()

let isChosen = (_id: string) => true

/** Registers the tests of the chosen rules, and only counts the other rules, whose tests another file registers. */
export function choose(chosen: (id: string) => boolean, register: () => void): void {
  isChosen = chosen
  register()
  isChosen = () => true
}

type Test = (id: string, run: () => Promise<void>, detail?: string) => void

/** Registers a test of one rule of rules.ts. If a rule has several tests, `detail` distinguishes their names. */
export const rule: Test = (id, run, detail) => {
  const name = nameOf(id, detail)
  if (isChosen(id)) it(name, skippable(run))
}

/** Like `rule`, but runs the test concurrently with others. For tests that wait for time to pass. */
export const concurrentRule: Test = (id, run, detail) => {
  const name = nameOf(id, detail)
  if (isChosen(id)) it.concurrent(name, skippable(run))
}

/**
 * Skips the test when it reads something that the deployment does not provide. If an assertion
 * fails earlier, the test fails.
 */
function skippable(run: () => Promise<void>) {
  return async ({ skip }: TestContext) => {
    try {
      await run()
    } catch (error) {
      if (!(error instanceof MissingAccess)) throw error
      skip(error.message)
    }
  }
}

function nameOf(id: string, detail: string | undefined): string {
  const found = rules.find((each) => each.id === id)
  if (found === undefined) throw new Error(`rule ${id} does not exist`)
  tested.set(id, (tested.get(id) ?? 0) + 1)
  return `${id} ${found.sentence}${detail === undefined ? '' : ` (${detail})`}`
}

/** Prints each rule with its number of tests; fails if a rule has none. Must be registered last. */
export function everyRuleIsTested(): void {
  it('contains only rules that have a test', () => {
    const states = rules.map(({ id, section, sentence }) => {
      const count = tested.get(id) ?? 0
      const state = count > 0 ? `${count} test${count === 1 ? '' : 's'}` : 'NO TEST'
      return { id, line: `${id.padEnd(28)} ${state.padEnd(22)} ${sentence} [${section}]`, state }
    })
    console.info(states.map(({ line }) => line).join('\n'))
    expect(states.filter(({ state }) => state === 'NO TEST').map(({ id }) => id)).toEqual([])
  })

  it('contains no rule id twice', () => {
    expect(new Set(rules.map(({ id }) => id)).size).toBe(rules.length)
  })
}

/** Number of times that a scenario with deadlines runs on a machine that is too slow. */
const MAX_TRIES = 4

/**
 * Runs a scenario whose steps have deadlines. It returns false if the machine missed one. Then it
 * runs again from its beginning.
 */
export async function inTime(scenario: () => Promise<boolean>): Promise<void> {
  for (let tries = 1; !(await scenario()); tries++)
    if (tries === MAX_TRIES) throw new Error(`the machine was too slow ${MAX_TRIES} times`)
}
