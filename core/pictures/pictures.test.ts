import { describe, expect, it } from 'vitest'
import { pngOf } from '../../test/support/images.ts'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { deleteObject } from '../privacy/deletions.ts'
import { runDueRemovals } from '../privacy/removals.ts'
import { testCores } from '../test/cores.ts'
import { facesOf, keepFace, setFace, setLogo } from './pictures.ts'

const cores = testCores({ env: { PUBLIC_URL: 'https://chat.example' } })
const day = 86_400
const stored = () => cores.core.database.collections.pictures
const idOf = (url: string | undefined) => url!.slice(-43)
const daysLeft = async (url: string | undefined) => {
  const { deleteAt } = (await stored().findOne({ _id: idOf(url) }))!
  return deleteAt && Math.round((deleteAt.getTime() - cores.now()) / 1000 / day)
}

describe('pictures of a workspace', () => {
  it('have the address of the setting PUBLIC_URL', async () => {
    const { workspaceId } = await cores.newSite()
    const picture = { workspaceId, image: pngOf(), gatewayOrigin: 'https://console.internal' }
    expect(await setFace(cores.core, 'ada', picture)).toMatch(/^https:\/\/chat\.example\/api\//)
  })

  it('are at most 500, and a picture of the same operator can still be replaced', async () => {
    const { workspaceId } = await cores.newSite()
    const { core } = cores
    const set = (operator: string) => setFace(core, operator, { workspaceId, image: pngOf(), gatewayOrigin: '' })
    const known = (await stored().findOne({ _id: idOf(await set('ada')) }))!
    await stored().insertMany(
      Array.from({ length: 499 }, (_, index) => ({
        ...known,
        _id: `${workspaceId} ${index}`,
        owner: `operator ${index}`,
      })),
    )
    await expect(set('bea')).rejects.toMatchObject({ issues: [{ path: '/image', rule: 'maxItems' }] })
    await set('ada')
    await stored().deleteOne({ _id: `${workspaceId} 0` })
    await set('ada')
    const { workspaceId: other } = await cores.newSite()
    await setFace(core, 'bea', { workspaceId: other, image: pngOf(), gatewayOrigin: '' })
  })

  it('of an operator expire 180 days after the last sign-in; an earlier one 30 days after it was replaced', async () => {
    const { workspaceId } = await cores.newSite()
    const { core } = cores
    const set = () => setFace(core, 'ada', { workspaceId, image: pngOf(), gatewayOrigin: '' })
    const [first, second] = [await set(), await set()]
    expect([await daysLeft(first), await daysLeft(second)]).toEqual([30, 180])
    cores.advance(20 * day)
    await keepFace(core, workspaceId, 'ada')
    await keepFace(core, workspaceId, 'nobody')
    expect([await daysLeft(first), await daysLeft(second)]).toEqual([10, 180])
    expect(await facesOf(core, workspaceId, ['ada', 'bea'])).toEqual(new Map([['ada', second]]))
    expect(await facesOf(core, 'ws_other', ['ada'])).toEqual(new Map())
  })

  it('of concurrent changes leave one present picture', async () => {
    const { workspaceId } = await cores.newSite()
    const { core } = cores
    const set = () => setFace(core, 'ada', { workspaceId, image: pngOf(), gatewayOrigin: '' })
    const urls = await Promise.all(Array.from({ length: 8 }, set))
    const face = (await facesOf(core, workspaceId, ['ada'])).get('ada')
    expect(urls).toContain(face)
    await set()
    expect(await stored().countDocuments({ workspaceId })).toBe(5)
  })

  itLong('are removed with their installation and with their workspace', async () => {
    const { workspaceId, publicSiteKey } = await cores.newSite()
    const { publicSiteKey: kept } = await cores.newSite({}, workspaceId)
    const { core } = cores
    const logo = { workspaceId, image: pngOf(), gatewayOrigin: '' }
    await setFace(core, 'ada', logo)
    for (const siteKey of [publicSiteKey, kept]) await setLogo(core, siteKey, logo, async (url) => url)
    const untilLeft = (count: number) =>
      until(`${count} pictures to be left`, async () => {
        cores.advance(70)
        await runDueRemovals(core)
        return (await stored().countDocuments({ workspaceId })) === count
      })
    await deleteObject(core, 'installation', publicSiteKey, undefined)
    await untilLeft(2)
    expect(await stored().countDocuments({ owner: `installation ${kept}` })).toBe(1)
    await deleteObject(core, 'workspace', workspaceId, undefined)
    await untilLeft(0)
  })
})
