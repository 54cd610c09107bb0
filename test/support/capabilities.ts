import { CapabilitiesSchema } from '#proto/session/v1/session_pb.js'

/** All capabilities of an installation, enabled. */
export const allCapabilities = Object.fromEntries(CapabilitiesSchema.fields.map(({ localName }) => [localName, true]))
