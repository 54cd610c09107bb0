import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
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

test('folders of different names have nothing to do with each other', async () => {
  const [one, beside, other] = ['c', 'c', 'd'].map((name) => createFileNudge(join(folder, name)))
  const known = other!.heard()
  one!.announce()
  await beside!.after(0, patience)
  expect(other!.heard()).toBe(known)
  for (const nudge of [one, beside, other]) nudge!.close()
})

test('nobody hears the own word', async () => {
  const [one, other] = [createFileNudge(join(folder, 'e')), createFileNudge(join(folder, 'e'))]
  // The other's file, as it appeared.
  await one.after(0, patience)
  const known = one.heard()
  const heardByOther = other.heard()
  one.announce()
  await other.after(heardByOther, patience)
  expect(one.heard()).toBe(known)
  one.close()
  other.close()
})

test('what a killed process left behind is cleared away, and what a living one has stays', () => {
  const place = join(folder, 'f')
  mkdirSync(place)
  const { pid } = spawnSync('true')
  for (const name of [`${pid}.0a`, `${process.ppid}.0a`]) writeFileSync(join(place, name), '')
  createFileNudge(place).close()
  expect(readdirSync(place)).toEqual([`${process.ppid}.0a`])
})
