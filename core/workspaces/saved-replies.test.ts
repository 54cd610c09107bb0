import { describe, expect, it } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { testCores } from '../test/cores.ts'

const cores = testCores({ count: 2, started: false })

describe('saved replies', () => {
  it('are saved, replaced and deleted by their shortcut, on every core', async () => {
    const { workspaceId } = await cores.newSite()
    const [one, other] = cores.cores.map(({ savedReplies }) => savedReplies)
    await Promise.all([
      one!.save(workspaceId, { shortcut: 'hours', body: 'We are open.' }),
      other!.save(workspaceId, { shortcut: 'bye', body: 'Good\nbye' }),
      one!.save(workspaceId, { shortcut: 'constructor', body: 'We built it.' }),
    ])
    await other!.save(workspaceId, { shortcut: 'hours', body: 'Open from 9 to 17.' })
    await one!.remove(workspaceId, 'constructor')
    await one!.remove(workspaceId, 'unknown')
    expect(await other!.list(workspaceId)).toEqual([
      { shortcut: 'bye', body: 'Good\nbye' },
      { shortcut: 'hours', body: 'Open from 9 to 17.' },
    ])
    expect(JSON.stringify(await cores.core.workspaces.findWorkspace(workspaceId))).not.toContain('Good')
  })

  it('are rejected with an invalid shortcut or body, above the limit and without a workspace', async () => {
    const { workspaceId } = await cores.newSite()
    const { savedReplies } = cores.core
    const invalid = { code: ErrorCode.VALIDATION_FAILED }
    for (const shortcut of ['', 'Hours', 'a b', 'a.b', '$set', '__proto__', 'x'.repeat(33)])
      await expect(savedReplies.save(workspaceId, { shortcut, body: 'text' })).rejects.toMatchObject(invalid)
    await expect(savedReplies.remove(workspaceId, 'a.b')).rejects.toMatchObject(invalid)
    await expect(savedReplies.save(workspaceId, { shortcut: 'a', body: ' ' })).rejects.toMatchObject(invalid)
    for (let index = 0; index < 100; index += 1)
      await savedReplies.save(workspaceId, { shortcut: `r${index}`, body: 'text' })
    await expect(savedReplies.save(workspaceId, { shortcut: 'more', body: 'text' })).rejects.toMatchObject(invalid)
    await savedReplies.save(workspaceId, { shortcut: 'r7', body: 'changed' })
    expect(await savedReplies.list(workspaceId)).toHaveLength(100)
    await expect(savedReplies.list('ws_unknown')).rejects.toMatchObject({ code: ErrorCode.NOT_FOUND })
  })

  it('are at most 100 in a workspace, even if several are saved at once', async () => {
    const { workspaceId } = await cores.newSite()
    const save = (core: (typeof cores)['core'], index: number) =>
      core.savedReplies.save(workspaceId, { shortcut: `r${index}`, body: 'text' })
    await Promise.all(Array.from({ length: 99 }, (_, index) => save(cores.core, index)))
    const more = await Promise.allSettled(
      Array.from({ length: 6 }, (_, index) => save(cores.cores[index % 2]!, 100 + index)),
    )
    expect(more.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await cores.core.savedReplies.list(workspaceId)).toHaveLength(100)
    await save(cores.other, 7)
  })

  it('are gone when the deletion of their workspace has begun', async () => {
    const { workspaceId } = await cores.newSite()
    const { savedReplies, deletions } = cores.core
    await savedReplies.save(workspaceId, { shortcut: 'bye', body: 'Goodbye' })
    await deletions.begin('workspace', workspaceId, undefined)
    await expect(savedReplies.list(workspaceId)).rejects.toMatchObject({ code: ErrorCode.NOT_FOUND })
    const late = cores.other.savedReplies.save(workspaceId, { shortcut: 'late', body: 'text' })
    await expect(late).rejects.toMatchObject({ code: ErrorCode.NOT_FOUND })
  })
})
