import { expect, it } from 'vitest'
import { initialsOf } from './initials.ts'

it.each([
  ['ada lovelace', 'AL'],
  [' Ada  King Lovelace ', 'AL'],
  ['é\u0301lise', 'É\u0301'],
  ['🇦🇹 Shop', '🇦🇹S'],
  ['👩‍👩‍👧‍👦 family', '👩‍👩‍👧‍👦F'],
  ['👍🏽', '👍🏽'],
  ['क्षितिज नायर', 'क्षिना'],
  ['각', '각'],
  ['\u202d\u200bAda\u202c', 'A'],
  ['', ''],
])('initialsOf(%s) returns %s', (name, initials) => expect(initialsOf(name)).toBe(initials))
