import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createFileNudge } from './nudge.ts'

const folder = mkdtempSync(join(tmpdir(), 'nudge-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const patience = 2 ** 30

test('one process’s word ends the wait of the others, and what came before the wait counts', async () => {
  const [one, other] = [createFileNudge(join(folder, 'a')), createFileNudge(join(folder, 'a'))]
  const known = other.heard()
  const waiting = other.after(known, patience)
  one.announce()
  await waiting
  expect(other.heard()).toBeGreaterThan(known)
  await other.after(known, patience)
  one.close()
  other.close()
})

test('without a word the wait ends by itself, and closing ends it', async () => {
  const nudge = createFileNudge(join(folder, 'b'))
  await nudge.after(nudge.heard(), 1)
  const waiting = nudge.after(nudge.heard(), patience)
  nudge.close()
  await waiting
  nudge.announce()
  nudge.close()
  await nudge.after(nudge.heard(), patience)
})

test('files of different names have nothing to do with each other', async () => {
  const [one, other] = [createFileNudge(join(folder, 'c')), createFileNudge(join(folder, 'd'))]
  const known = other.heard()
  one.announce()
  await one.after(0, patience)
  expect(other.heard()).toBe(known)
  one.close()
  other.close()
})
