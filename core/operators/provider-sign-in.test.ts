import { expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import { ServiceError } from '../errors.ts'
import { testCores } from '../test/cores.ts'
import type { IdentityProvider } from './identity-provider.ts'
import { identityProviderOf, recheckProviderSessions } from './provider-sign-in.ts'

const cores = testCores()
const issuer = 'https://login.example'

/** Sign-ins at a provider that answers a refresh as `refresh` says. */
function signInWith(refresh: IdentityProvider['refresh']) {
  const { core } = cores
  const never = () => Promise.reject(new Error('not used'))
  const provider = { issuer, signInUrl: never, finish: never, refresh }
  identityProviderOf.set(core, provider)
  return { recheck: () => recheckProviderSessions(core) }
}

/** Stores sessions of these operators, whose claims are due in this order. */
async function signedIn(...operators: string[]) {
  const { database, secretBox } = cores.core
  await database.collections.consoleSessions.deleteMany({})
  const session = { workspaceId: cores.workspaceId, scopes: [], createdAt: new Date(), expiresAt: new Date(9e12) }
  await database.collections.consoleSessions.insertMany(
    operators.map((operator, index) => ({
      ...{ _id: operator, operator, displayName: operator, method: 'provider' as const, ...session },
      provider: { issuer, sealed: secretBox.seal('token'), recheckAt: new Date(index) },
    })),
  )
}

const stored = (_id: string) => cores.core.database.collections.consoleSessions.findOne({ _id })

it('a session ends at its check although the provider does not answer the check of another one', async () => {
  const answer = Promise.withResolvers<never>()
  const signIn = signInWith((operator) => {
    if (operator === 'slow') return answer.promise
    throw new ServiceError('Unauthenticated')
  })
  await signedIn('slow', 'revoked', 'revoked too')
  const checking = signIn.recheck()
  await until('the end', async () => !(await stored('revoked')) && !(await stored('revoked too')))
  answer.reject(new ServiceError('Unauthenticated'))
  await checking
  expect(await stored('slow')).toBeNull()
})

it('a session is checked again within seconds after a check that the provider did not answer', async () => {
  const signIn = signInWith(() => Promise.reject(new Error('away')))
  await signedIn('ada')
  await signIn.recheck()
  const { recheckAt } = (await stored('ada'))!.provider!
  expect(recheckAt.getTime()).toBeGreaterThan(cores.core.now())
  expect(recheckAt.getTime()).toBeLessThanOrEqual(cores.core.now() + 5_000)
})

it('claims are read again early enough for a round of checks to end within a minute', async () => {
  const claims = { operator: 'ada', displayName: 'Ada', scopes: [], refreshToken: 'next' }
  const signIn = signInWith(async () => ({ ...claims, workspaceId: cores.workspaceId }))
  await signedIn('ada')
  await signIn.recheck()
  expect((await stored('ada'))!.provider!.recheckAt.getTime()).toBeLessThanOrEqual(cores.core.now() + 30_000)
})
