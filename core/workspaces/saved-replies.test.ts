import { describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { deleteObject } from '../privacy/deletions.ts'
import { testCores } from '../test/cores.ts'
import { deleteSavedReply, listSavedReplies, saveReply } from './saved-replies.ts'
import { findWorkspace } from './workspaces.ts'

const cores = testCores({ count: 2, started: false })

describe('saved replies', () => {
  it('are saved, replaced and deleted by their shortcut, on every core', async () => {
    const { workspaceId } = await cores.newSite()
    const [one, other] = cores.cores
    await Promise.all([
      saveReply(one!, workspaceId, { shortcut: 'hours', body: 'We are open.' }),
      saveReply(other!, workspaceId, { shortcut: 'bye', body: 'Good\nbye' }),
      saveReply(one!, workspaceId, { shortcut: 'constructor', body: 'We built it.' }),
    ])
    await saveReply(other!, workspaceId, { shortcut: 'hours', body: 'Open from 9 to 17.' })
    await deleteSavedReply(one!, workspaceId, 'constructor')
    await deleteSavedReply(one!, workspaceId, 'unknown')
    expect(await listSavedReplies(other!, workspaceId)).toEqual([
      { shortcut: 'bye', body: 'Good\nbye' },
      { shortcut: 'hours', body: 'Open from 9 to 17.' },
    ])
    expect(JSON.stringify(await findWorkspace(cores.core, workspaceId))).not.toContain('Good')
  })

  it('are rejected with an invalid shortcut or body, above the limit and without a workspace', async () => {
    const { workspaceId } = await cores.newSite()
    const { core } = cores
    const invalid = { code: 'ValidationFailed' }
    for (const shortcut of ['', 'Hours', 'a b', 'a.b', '$set', '__proto__', 'x'.repeat(33)])
      await expect(saveReply(core, workspaceId, { shortcut, body: 'text' })).rejects.toMatchObject(invalid)
    await expect(deleteSavedReply(core, workspaceId, 'a.b')).rejects.toMatchObject(invalid)
    await expect(saveReply(core, workspaceId, { shortcut: 'a', body: ' ' })).rejects.toMatchObject(invalid)
    for (let index = 0; index < 100; index += 1)
      await saveReply(core, workspaceId, { shortcut: `r${index}`, body: 'text' })
    await expect(saveReply(core, workspaceId, { shortcut: 'more', body: 'text' })).rejects.toMatchObject(invalid)
    await saveReply(core, workspaceId, { shortcut: 'r7', body: 'changed' })
    expect(await listSavedReplies(core, workspaceId)).toHaveLength(100)
    await expect(listSavedReplies(core, 'ws_unknown')).rejects.toMatchObject({ code: 'NotFound' })
  })

  itLong('are at most 100 in a workspace, even if several are saved at once', async () => {
    const { workspaceId } = await cores.newSite()
    const save = (core: (typeof cores)['core'], index: number) =>
      saveReply(core, workspaceId, { shortcut: `r${index}`, body: 'text' })
    await Promise.all(Array.from({ length: 99 }, (_, index) => save(cores.core, index)))
    const more = await Promise.allSettled(
      Array.from({ length: 6 }, (_, index) => save(cores.cores[index % 2]!, 100 + index)),
    )
    expect(more.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await listSavedReplies(cores.core, workspaceId)).toHaveLength(100)
    await save(cores.other, 7)
  })

  it('are gone when the deletion of their workspace has begun', async () => {
    const { workspaceId } = await cores.newSite()
    const { core } = cores
    await saveReply(core, workspaceId, { shortcut: 'bye', body: 'Goodbye' })
    await deleteObject(core, 'workspace', workspaceId, undefined)
    await expect(listSavedReplies(core, workspaceId)).rejects.toMatchObject({ code: 'NotFound' })
    const late = saveReply(cores.other, workspaceId, { shortcut: 'late', body: 'text' })
    await expect(late).rejects.toMatchObject({ code: 'NotFound' })
  })
})
