export const chatIcon = [
  'M12 3.5c5 0 9 3.4 9 7.8s-4 7.8-9 7.8c-1 0-2-.14-2.9-.4L4.6 20.5l.9-3.6C4 15.5 3 13.5 3 11.3c0-4.4 4-7.8 9-7.8Z',
]
export const collapseIcon = ['M6 9.5l6 6 6-6']
export const closeIcon = ['M6.5 6.5l11 11', 'M17.5 6.5l-11 11']
export const sendIcon = ['M12 19V5.5', 'M6 11.2l6-6 6 6']
export const downIcon = ['M12 5v13.5', 'M6 12.8l6 6 6-6']
export const alertIcon = ['M12 8v5', 'M12 16.2v.1', 'M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17Z']
