import { describe, expect, it } from 'vitest'
import { startFault } from './start-faults.ts'

describe('a start that fails', () => {
  it.each([
    ['EACCES', 'let this user own it'],
    ['EPERM', 'let this user own it'],
    ['EROFS', 'its file system is read-only'],
    ['ENOSPC', 'its disk is full'],
  ])('because of a file (%s) names it and the remedy', (code, remedy) => {
    const error = Object.assign(new Error(`${code}: fault, scandir '/data'`), { code, path: '/data' })
    expect(startFault(error)).toBe(`/data cannot be used (${code}): ${remedy}`)
  })

  it('for another reason keeps its message', () => {
    expect(startFault(Object.assign(new Error('no port'), { code: 'EACCES' }))).toBe('no port')
  })
})
