import { readFile } from 'node:fs/promises'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { SuppressionEntrySchema } from '#proto/workspace/v1/workspace_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { readSuppressionList } from '../../contract/suppression-list.ts'
import { slicesOf } from '../../platform/concurrency/batcher.ts'
import { call, command, type Group, many, text, UsageError, type Values } from '../command.ts'
import { page, workspace } from './flags.ts'

type Entry = MessageInitShape<typeof SuppressionEntrySchema>

const people = {
  workspace,
  subject: many(text('the host’s id of a visitor; repeatable')),
  email: many(text('an e-mail address; repeatable')),
  phone: many(text('a phone number with country code; repeatable')),
  file: text(
    'a file with one entry per line: an address, a number, or subject:… for a host’s id; or CSV with a header of email, phone or subject',
  ),
}

const perCall = 1_000

async function entriesOf({ subject = [], email = [], phone = [], file }: Partial<Values<typeof people>>) {
  const entries = [
    ...subject.map((value): Entry => ({ of: { case: 'subject', value } })),
    ...email.map((value): Entry => ({ of: { case: 'email', value } })),
    ...phone.map((value): Entry => ({ of: { case: 'phone', value } })),
    ...(file === undefined ? [] : readEntries(await readFile(file, 'utf8'))),
  ]
  if (entries.length === 0) throw new UsageError('name entries: --subject, --email, --phone or --file')
  return entries
}

/** Reads a list. Errors: `UsageError` if a line or column cannot be read. The command then sends nothing. */
export function readEntries(content: string): Entry[] {
  const { entries, invalid, ignored, hasHeader } = readSuppressionList(content)
  if (invalid.length > 0) {
    const lines = invalid.slice(0, 20).map(({ line }) => line)
    throw new UsageError(`neither subject, address nor number: line ${lines.join(', ')}`)
  }
  if (ignored.length > 0 && !hasHeader)
    throw new UsageError('the file has several columns: name them in its first line, for example email,phone,subject')
  return entries.map(({ kind, value }) => ({ of: { case: kind, value } }))
}

export const suppressions: Group = {
  add: command(
    { ...people, reason: text('for the record, at most 512 characters') },
    async ({ workspaces }, { workspaceId, reason, ...named }) => {
      const total = { added: 0, existing: 0 }
      for (const entries of slicesOf(await entriesOf(named), perCall)) {
        const { added, existing } = await workspaces.addSuppressions({ workspaceId, entries, reason })
        total.added += added
        total.existing += existing
      }
      return total
    },
  ),
  remove: command(
    { ...people, id: many(text('an id from the list; repeatable', 'suppressionIds')) },
    async ({ workspaces }, { workspaceId, suppressionIds = [], ...named }) => {
      if (suppressionIds.length > 0) {
        const { removed } = await workspaces.removeSuppressions({ workspaceId, suppressionIds })
        return { removed }
      }
      let removed = 0
      for (const entries of slicesOf(await entriesOf(named), perCall))
        removed += (await workspaces.removeSuppressions({ workspaceId, entries })).removed
      return { removed }
    },
  ),
  list: call(WorkspaceService.method.listSuppressions, { workspace, page }),
}
