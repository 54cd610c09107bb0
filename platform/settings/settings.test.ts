import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { misspeltNames } from './config.ts'
import { defineSettings, integer, text } from './settings.ts'

const folder = mkdtempSync(join(tmpdir(), 'settings-test-'))
afterAll(() => rmSync(folder, { recursive: true }))

const { read } = defineSettings({ SECRET_KEYS: text(), CORE_PORT: integer(8090, 1, 65_535) }, {})

function fileWith(content: string): string {
  const path = join(folder, `secret-${content.length}`)
  writeFileSync(path, content)
  return path
}

it.each(['k1:abc', 'k1:abc\n', 'k1:abc\r\n'])('a setting can be in a file: %j', (content) => {
  expect(read({ SECRET_KEYS_FILE: fileWith(content) })).toEqual({ SECRET_KEYS: 'k1:abc', CORE_PORT: 8090 })
})

it('a value in a file is checked as any other', () => {
  expect(read({ CORE_PORT_FILE: fileWith('81') }).CORE_PORT).toBe(81)
  expect(() => read({ CORE_PORT_FILE: fileWith('many') })).toThrow(/^CORE_PORT must be a whole number/)
})

it('a setting with two values, and a file that is missing, empty or a folder, are named without the value', () => {
  expect(() => read({ SECRET_KEYS: 's3cret', SECRET_KEYS_FILE: fileWith('s3cret') })).toThrow(
    /^SECRET_KEYS and SECRET_KEYS_FILE are both set: set one of them$/,
  )
  expect(() => read({ SECRET_KEYS_FILE: join(folder, 'none') })).toThrow(
    /^SECRET_KEYS_FILE: cannot read .*none \(ENOENT\)$/,
  )
  expect(() => read({ SECRET_KEYS_FILE: folder })).toThrow(/EISDIR/)
  expect(() => read({ SECRET_KEYS_FILE: fileWith('\n') })).toThrow(/^SECRET_KEYS_FILE: .* is empty$/)
  expect(read({ SECRET_KEYS_FILE: '' }).SECRET_KEYS).toBe('')
})

it('names of files with settings count as known', () => {
  expect(misspeltNames({ SECRET_KEYS_FILE: '/x', CORE_PORT_FILE: '/y' })).toEqual([])
  expect(misspeltNames({ SECRET_KEYS_FILES: '/x' })).toHaveLength(1)
})

it('a misspelt name gets the closest setting', () => {
  for (const [name, meant] of [
    ['CORES_URLS', 'CORE_URLS'],
    ['CORE_TLS_CET', 'CORE_TLS_CERT'],
    ['GATEWAY_PORTS', 'GATEWAY_PORT'],
  ])
    expect(misspeltNames({ [name!]: 'x' })).toEqual([{ name, meant }])
})
