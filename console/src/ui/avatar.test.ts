import { expect, it } from 'vitest'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { Avatar } from './avatar.tsx'

it.each([undefined, Presence.UNSPECIFIED, Presence.GONE])(
  'an avatar shows initials only, without the number of a presence that is unknown or offline (%s)',
  (presence) => {
    const { children } = Avatar({ name: 'Grace Hopper', id: 'cnv_1', presence }).props
    expect(children).toEqual(['GH', undefined])
  },
)
