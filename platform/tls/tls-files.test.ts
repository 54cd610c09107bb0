import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { coreCertificates } from '../../test/support/core-certificates.ts'
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
  const files = createTlsFiles(paths, () => time)
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
  ['a missing file', (paths: { key: string }) => rmSync(paths.key)],
  ['a key of another certificate', (paths: { key: string }) => writeFileSync(paths.key, second.core.key)],
  ['a file without a certificate', (paths: { cert: string }) => writeFileSync(paths.cert, 'nothing')],
])('createTlsFiles throws for %s', (_, spoil) => {
  const paths = written()
  spoil(paths as never)
  expect(() => createTlsFiles(paths)).toThrow()
})

it('createTlsFiles ignores a path that is undefined', () => {
  const { cert, key } = written()
  expect(Object.keys(createTlsFiles({ ca: undefined, cert, key }).current())).toEqual(['cert', 'key'])
})
