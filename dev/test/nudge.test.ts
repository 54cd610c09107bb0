import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createFileNudge } from '../engine/nudge.ts'

const folder = mkdtempSync(join(tmpdir(), 'nudge-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const maxWaitMs = 2 ** 30

test('a wait for wake-ups ends when another process announces a wake-up, even if the announcement came before the wait began', async () => {
  const [one, other] = [createFileNudge(join(folder, 'a')), createFileNudge(join(folder, 'a'))]
  const known = other.count()
  const waiting = other.after(known, maxWaitMs)
  one.announce()
  await waiting
  expect(other.count()).toBeGreaterThan(known)
  await other.after(known, maxWaitMs)
  one.close()
  other.close()
})

test('without an announced wake-up, a wait ends at its timeout or when the nudge is closed', async () => {
  const nudge = createFileNudge(join(folder, 'b'))
  await nudge.after(nudge.count(), 1)
  const waiting = nudge.after(nudge.count(), maxWaitMs)
  nudge.close()
  await waiting
  nudge.announce()
  nudge.close()
  await nudge.after(nudge.count(), maxWaitMs)
})

test('a wake-up that is announced in one folder is not received in another folder', async () => {
  const [one, beside, other] = ['c', 'c', 'd'].map((name) => createFileNudge(join(folder, name)))
  const known = other!.count()
  one!.announce()
  await beside!.after(0, maxWaitMs)
  expect(other!.count()).toBe(known)
  for (const nudge of [one, beside, other]) nudge!.close()
})

test('a process does not receive its own announcements', async () => {
  const [one, other] = [createFileNudge(join(folder, 'e')), createFileNudge(join(folder, 'e'))]
  // Consume the announcement that the other nudge caused when it created its file.
  await one.after(0, maxWaitMs)
  const known = one.count()
  const countOfOther = other.count()
  one.announce()
  await other.after(countOfOther, maxWaitMs)
  expect(one.count()).toBe(known)
  one.close()
  other.close()
})

test('a new nudge removes the files of dead processes and keeps the files of running processes', () => {
  const place = join(folder, 'f')
  mkdirSync(place)
  const { pid } = spawnSync('true')
  for (const name of [`${pid}.0a`, `${process.ppid}.0a`]) writeFileSync(join(place, name), '')
  createFileNudge(place).close()
  expect(readdirSync(place)).toEqual([`${process.ppid}.0a`])
})
