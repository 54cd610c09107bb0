import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { coreCertificates } from '../../test/support/certificates.ts'
import { createTlsFiles } from './tls-files.ts'

const { first, second } = coreCertificates

function written() {
  const folder = mkdtempSync(join(tmpdir(), 'tls-files-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const paths = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  writeFileSync(paths.cert, first.core.cert)
  writeFileSync(paths.key, first.core.key)
  return paths
}

it('`current` returns the new files only when certificate and key match', () => {
  const paths = written()
  let time = 0
  const files = createTlsFiles(paths, { monotonic: () => time })
  const before = files.current()
  expect(before.cert?.toString()).toBe(first.core.cert)

  writeFileSync(paths.cert, second.core.cert)
  time += 1000
  expect(files.current()).toBe(before)
  rmSync(paths.key)
  time += 1000
  expect(files.current()).toBe(before)
  writeFileSync(paths.key, second.core.key)
  expect(files.current()).toBe(before)
  time += 1000
  const after = files.current()
  expect([after.cert?.toString(), after.key?.toString()]).toEqual([second.core.cert, second.core.key])
  time += 1000
  expect(files.current()).toBe(after)
})

it.each([
  ['a missing file', (paths: { key: string }) => rmSync(paths.key), 'KEY: the file PATH does not exist'],
  [
    'a key of another certificate',
    (paths: { key: string }) => writeFileSync(paths.key, second.core.key),
    'KEY: the key does not belong to the certificate of CERT',
  ],
  [
    'a file without a certificate',
    (paths: { cert: string }) => writeFileSync(paths.cert, 'nothing'),
    'CERT: the file PATH has no valid certificate (PEM)',
  ],
])('createTlsFiles throws a SettingError with the name of the setting for %s', (_, spoil, message) => {
  const paths = written()
  spoil(paths as never)
  const path = message.startsWith('CERT') ? paths.cert : paths.key
  expect(() => createTlsFiles(paths, { names: { cert: 'CERT', key: 'KEY' } })).toThrow(message.replace('PATH', path))
})

it('warns once of changed files that stay invalid, and reports the recovery', () => {
  const paths = written()
  const lines: unknown[][] = []
  const logger = { warn: (...line: unknown[]) => lines.push(line), info: (...line: unknown[]) => lines.push(line) }
  let time = 0
  const files = createTlsFiles(paths, { logger: logger as never, monotonic: () => time })
  writeFileSync(paths.cert, 'broken')
  for (const [at, isStale, count] of [
    [1_000, false, 0],
    [10_000, false, 0],
    [11_000, true, 1],
    [20_000, true, 1],
  ] as const) {
    time = at
    files.current()
    expect([at, files.isStale(), lines.length]).toEqual([at, isStale, count])
  }
  expect(lines[0]).toEqual([
    { reason: expect.stringContaining('has no valid certificate') },
    'the changed TLS files are invalid; still using the earlier ones',
  ])
  writeFileSync(paths.cert, second.core.cert)
  writeFileSync(paths.key, second.core.key)
  time += 1_000
  expect([files.current().cert?.toString(), files.isStale(), lines.length]).toEqual([second.core.cert, false, 2])
})

it('`expiresAt` returns the expiry of the certificate', () => {
  const { validToDate } = new X509Certificate(first.core.cert)
  expect(createTlsFiles(written()).expiresAt()).toBe(validToDate.getTime())
})

it('createTlsFiles ignores a path that is undefined', () => {
  const { cert, key } = written()
  expect(Object.keys(createTlsFiles({ ca: undefined, cert, key }).current())).toEqual(['cert', 'key'])
})
