// Compares two PNGs, given in base64. What differs is red in a third one.
async ([one, other]) => {
  const VISIBLE = 16; // of 255, in one colour; less is how letters are smoothed
  const dots = async (text) => {
    const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  };
  const [before, now] = [await dots(one), await dots(other)];
  const width = Math.max(before.width, now.width);
  const height = Math.max(before.height, now.height);
  const shown = new ImageData(width, height);
  let count = 0;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const both = x < Math.min(before.width, now.width) && y < Math.min(before.height, now.height);
      const [i, j] = [4 * (y * before.width + x), 4 * (y * now.width + x)];
      const differs =
        !both || [0, 1, 2, 3].some((k) => Math.abs(before.data[i + k] - now.data[j + k]) > VISIBLE);
      count += differs ? 1 : 0;
      const faded = (k) => 255 - (255 - now.data[j + k]) / 4;
      shown.data.set(differs ? [255, 0, 0, 255] : [faded(0), faded(1), faded(2), 255], 4 * (y * width + x));
    }
  }
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").putImageData(shown, 0, 0);
  const png = new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer());
  let text = "";
  for (const each of png) text += String.fromCharCode(each);
  const size = ({ width, height }) => `${width} by ${height}`;
  const same = before.width === now.width && before.height === now.height;
  return {
    part: same ? count / (width * height) : 1,
    sizes: same ? "" : `${size(before)} before, ${size(now)} now`,
    picture: btoa(text),
  };
};
