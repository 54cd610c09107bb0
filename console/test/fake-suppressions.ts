import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import {
  type Suppression,
  type SuppressionEntry,
  SuppressionSchema,
  type WorkspaceService,
} from '#proto/workspace/v1/workspace_pb.js'
import { at } from './fake-core.ts'

type Calls = Pick<ServiceImpl<typeof WorkspaceService>, 'addSuppressions' | 'removeSuppressions' | 'listSuppressions'>

const pageSize = 100

/** A fake suppression list in memory. Like the core, it lists entries without their values. */
export function fakeSuppressions() {
  let list: Suppression[] = []
  const idOf = ({ of }: SuppressionEntry) => `spr_${of.case}_${Buffer.from(of.value ?? '').toString('base64url')}`
  const add = (suppression: MessageInitShape<typeof SuppressionSchema>) =>
    void list.unshift(create(SuppressionSchema, { addedBy: 'ada@example.com', addedAt: at(0), ...suppression }))
  const methods: Calls = {
    addSuppressions({ entries, reason }) {
      // The core rejects invalid domains. This fake core rejects values that end in `.invalid-domain` instead.
      const issues = entries.flatMap(({ of }, index) =>
        of.value?.endsWith('.invalid-domain') ? [{ path: `/entries/${index}/email`, rule: 'format' }] : [],
      )
      if (entries.length > 1000 || issues.length > 0)
        throw new ConnectError('ValidationFailed', Code.InvalidArgument, undefined, [
          { desc: ErrorInfoSchema, value: { code: 'ValidationFailed', issues } },
        ])
      const fresh = entries.filter((entry) => !list.some(({ suppressionId }) => suppressionId === idOf(entry)))
      for (const entry of fresh) add({ suppressionId: idOf(entry), kind: entry.of.case, reason })
      return { added: fresh.length, existing: entries.length - fresh.length }
    },
    removeSuppressions({ suppressionIds }) {
      const before = list.length
      list = list.filter(({ suppressionId }) => !suppressionIds.includes(suppressionId))
      return { removed: before - list.length }
    },
    listSuppressions({ entry, pageToken }) {
      if (entry) return { suppressions: list.filter(({ suppressionId }) => suppressionId === idOf(entry)) }
      const from = Number(pageToken)
      const isLast = from + pageSize >= list.length
      return { suppressions: list.slice(from, from + pageSize), nextPageToken: isLast ? '' : `${from + pageSize}` }
    },
  }
  return { methods, add, count: () => list.length }
}
