import { beforeAll, describe, expect, it } from 'vitest'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { type FuzzReport, fuzz } from './fuzz.ts'

const database = testDatabase()
let stack: Stack
let report: FuzzReport

beforeAll(async () => {
  stack = await startStack({ database, env: { RATE_LIMIT_FACTOR: '100000', LOG_LEVEL: 'warn' } })
})

describe('hostile input', () => {
  it('gets nothing back but answers of the contract', async () => {
    report = await fuzz({ stack, seed: 1, casesEach: 12, goesOn: (round) => round === 0 })
    expect(report.findings.slice(0, 20)).toEqual([])
    expect(report.routes).toBeGreaterThan(18)
    expect(report.methods).toBeGreaterThan(55)
  })
})
