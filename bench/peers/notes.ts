// Said beside a figure that is not met: what was tried. A figure that is met needs none.

export const notes: Readonly<Record<string, string>> = {}
