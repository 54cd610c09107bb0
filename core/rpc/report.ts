import { create } from '@bufbuild/protobuf'
import type { ServiceImpl } from '@connectrpc/connect'
import { GetReportResponseSchema, type MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { inboxOf } from '../conversations/inbox.ts'
import type { Core } from '../core.ts'
import { readReport } from '../reports/reports.ts'
import { requiredWorkspace } from '../transport/caller.ts'

/** The method of `service.messaging.v1.MessagingService` for reports. */
export const reportMethods = (core: Core): Pick<ServiceImpl<typeof MessagingService>, 'getReport'> => ({
  async *getReport({ workspaceId, firstDay, days, timeZone }, context) {
    const query = { workspaceId: requiredWorkspace(context, workspaceId), firstDay, days, timeZone }
    // The report must include the messages that this process has accepted.
    await inboxOf(core).noted()
    for await (const part of readReport(core, query, context.signal)) {
      const isReport = 'total' in part
      yield create(GetReportResponseSchema, {
        frame: isReport ? { case: 'report', value: part } : { case: 'progress', value: part },
      })
    }
  },
})
