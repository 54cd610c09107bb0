import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter, HandlerContext } from '@connectrpc/connect'
import { ErasureState, PrivacyService, type Visitor } from '#proto/privacy/v1/privacy_pb.js'
import type { CoreContext } from '../context.ts'
import { invalid } from '../errors.ts'
import type { Erasure, VisitorName } from '../privacy/model.ts'
import { callerOf, requiredWorkspace } from '../transport/caller.ts'

export function privacyService(router: ConnectRouter, { visitorNames, visitorExport, erasures }: CoreContext): void {
  function nameOf(visitor: Visitor | undefined, context: HandlerContext): Promise<VisitorName> {
    switch (visitor?.by.case) {
      case 'sessionId':
        return visitorNames.ofSession(visitor.by.value, callerOf(context).workspaceId)
      case 'subject': {
        const { workspaceId, externalSubject } = visitor.by.value
        return visitorNames.ofSubject(requiredWorkspace(context, workspaceId), externalSubject)
      }
      default:
        throw invalid('/visitor', 'required')
    }
  }

  router.service(PrivacyService, {
    async *exportVisitor({ visitor }, context) {
      for await (const line of visitorExport.lines(await nameOf(visitor, context))) yield { line }
    },

    async eraseVisitor({ visitor }, context) {
      const name = await nameOf(visitor, context)
      return { erasure: toErasure(await erasures.begin(name, callerOf(context).subject)) }
    },

    async getErasure({ erasureId }, context) {
      return { erasure: toErasure(await erasures.find(erasureId, callerOf(context).workspaceId)) }
    },
  })
}

const states = {
  ending: ErasureState.RUNNING,
  removing: ErasureState.RUNNING,
  removed: ErasureState.REMOVED,
  finished: ErasureState.FINISHED,
} as const

function toErasure({ stage, requestedAt, finishedAt, ...rest }: Erasure) {
  return {
    ...rest,
    state: states[stage],
    requestedAt: timestampFromDate(requestedAt),
    finishedAt: finishedAt && timestampFromDate(finishedAt),
  }
}
