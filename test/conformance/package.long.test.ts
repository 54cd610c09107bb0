import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, it } from 'vitest'
import { atFileEnd } from '../support/clean-up.ts'
import { freePort, inheritedEnvironment } from '../support/processes.ts'
import { copyWithChanges } from '../support/source-copy.ts'
import { startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { packConformance } from './pack.ts'
import type { Report } from './report.ts'
import { seededFaults } from './seeded-faults.ts'

const database = testDatabase()
let project: string

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'service-conformance-'))
  atFileEnd(() => rm(project, { recursive: true, force: true }))
  const tarball = await packConformance(project)
  const install = ['install', '--no-audit', '--no-fund', '--prefer-offline', '--prefix', project, tarball]
  await promisify(execFile)('npm', install, { cwd: project })
}, 600_000)

/** Runs the installed command. */
function conformance(...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const options = { cwd: project, env: inheritedEnvironment(), maxBuffer: 1e8 }
  const command = join(project, 'node_modules/@service/conformance/main.js')
  return new Promise((resolve) => {
    execFile(process.execPath, [command, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    )
  })
}

it('checks a public deployment from outside, and reports as text, JSON and HTML', async () => {
  const { gateways, demo } = await startStack({ database })
  const site = [gateways[0]!.url, '--site-key', demo.siteKey, '--origin', demo.origin]
  const all = await conformance(...site, '--json')
  const report: Report = JSON.parse(all.stdout)
  const rowsThat = (state: string) => report.tests.filter((test) => test.state === state)
  expect(rowsThat('failed')).toEqual([])
  expect(report.problems).toEqual([])
  expect(all.code).toBe(0)
  expect(rowsThat('passed').length).toBeGreaterThan(80)
  for (const { reason } of rowsThat('not run')) expect(reason).toMatch(/^needs /)
  expect(new Set(rowsThat('not run').map(({ reason }) => reason))).toContain('needs a service token')
  expect(all.stdout).not.toContain(demo.serviceToken)

  const text = await conformance(...site, '--rules', 'C1.4,C3.50')
  expect(text.code, text.stdout).toBe(0)
  expect(text.stdout).toContain(`Service: ${gateways[0]!.url}\nSite: ${demo.siteKey}, ${demo.origin}\n`)
  expect(text.stdout).toMatch(/^passed {3}C1\.4 unknown fields .*$/m)
  expect(text.stdout).toMatch(/^not run {2}C3\.50 .*: needs an identity secret$/m)
  expect(text.stdout).toContain('1 tests passed, 0 failed.\n2 of 3 tests need more access')

  const html = await conformance(...site, '--rules', 'C1.4,C3.50', '--html')
  expect(html.code).toBe(0)
  expect(html.stdout).toMatch(/^<!doctype html>.*<tr class="passed"><td>passed<td>C1\.4<td>.*<\/html>\n$/s)
  expect(html.stdout).not.toMatch(/<script|<link|src=|href=/)
})

it.each(['--json', '--html', '--rules=C1.4'])('exits with 1 if the service violates a rule (%s)', async (form) => {
  const { changes } = seededFaults.find(({ rule }) => rule === 'C1.4')!
  const root = await copyWithChanges(changes)
  atFileEnd(() => rm(root, { recursive: true, force: true }))
  const { gateways, demo } = await startStack({
    database: { ...database, name: `${database.name}${form.slice(2, 6)}` },
    root,
  })
  const site = [gateways[0]!.url, '--site-key', demo.siteKey, '--origin', demo.origin]
  const { code, stdout } = await conformance(...site, '--rules', 'C1.4', form)
  expect(code).toBe(1)
  expect(stdout).toMatch(/"state": "failed"|<td>failed<td>C1\.4<td>|^FAIL {5}C1\.4 /m)
})

it('exits with 1 if it cannot reach the service, and with 2 without a site', async () => {
  const url = `http://127.0.0.1:${await freePort()}`
  const unreachable = await conformance(url, '--site-key', 'pk_a', '--origin', 'https://a.example')
  expect(unreachable.stdout).toMatch(/^ERROR {4}fetch failed/m)
  expect(unreachable.code).toBe(1)
  const { code, stderr } = await conformance(url)
  expect(stderr).toContain('usage: conformance <url>')
  expect(code).toBe(2)
})
