import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'

const run = promisify(execFile)
const cwd = join(import.meta.dirname, '../..')

/** Imports a file as a part does. Returns whether Node had to load its stripper. */
async function needsStripper(file: string): Promise<boolean> {
  const script = `await import(${JSON.stringify(file)}); console.log(process.moduleLoadList.some((each) => /amaro/.test(each)))`
  const args = ['--import', './platform/stripped.mjs', '--input-type=module', '--eval', script]
  return JSON.parse((await run(process.execPath, args, { cwd })).stdout)
}

itLong('a part loads the copies that the build has written, and strips other files itself', async () => {
  await run(process.execPath, ['platform/stripped.mjs'], { cwd })
  expect(await needsStripper('./serve/parts.ts')).toBe(false)
  expect(await needsStripper('./test/support/until.ts')).toBe(true)
})
