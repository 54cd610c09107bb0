import { beforeAll, describe, expect, it } from 'vitest'
import type { CoreContext } from '../context.ts'
import { testCores } from '../test-cores.ts'

const test = testCores(2)
let cores: CoreContext[]
beforeAll(async () => {
  cores = await test.open()
})

const twice = [0, 1, 2, 3, 4, 5]

describe('two operators at once', () => {
  it('who update different fields both have what they set', async () => {
    for (const _ of twice) {
      const { siteKey } = await test.newSite()
      const [a, b] = cores as [CoreContext, CoreContext]
      await Promise.all([
        a.workspaces.updateInstallation(siteKey, { capabilities: { screenshots: false } }, undefined),
        b.workspaces.updateInstallation(siteKey, { capabilities: { typing: false } }, undefined),
        a.workspaces.updateInstallation(siteKey, { appearance: { title: 'One' } }, undefined),
        b.workspaces.updateInstallation(siteKey, { appearance: { greeting: 'Two' } }, undefined),
        a.workspaces.updateInstallation(siteKey, { forms: { preChat: [] } }, undefined),
        b.workspaces.updateInstallation(siteKey, { forms: { offline: [] } }, undefined),
      ])
      const [now] = await a.workspaceStore.findInstallations([siteKey])
      expect(now).toMatchObject({
        capabilities: { screenshots: false, typing: false, navigation: true },
        appearance: { title: 'One', greeting: 'Two', position: 'right' },
        forms: { preChat: [], offline: [] },
      })
    }
  })

  it('who rotate the identity secret both have a secret that is live, and the one in use stays', async () => {
    for (const _ of twice) {
      const { siteKey } = await test.newSite()
      const live = async () => {
        const [installation] = await cores[0]!.workspaceStore.findInstallations([siteKey])
        return installation!.identitySecrets.map(({ kid }) => kid)
      }
      const [inUse] = await live()
      const made = await Promise.all(cores.map(({ workspaces }) => workspaces.rotateIdentitySecret(siteKey, undefined)))
      expect(await live()).toEqual(expect.arrayContaining([inUse, ...made.map(({ kid }) => kid)]))
    }
  })
})
