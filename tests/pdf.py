"""A PDF, as small as one can be."""

from collections.abc import Sequence


def pdf_of(pages: Sequence[str]) -> bytes:
    """A PDF with a line of text, or nothing, on each page."""
    kids = " ".join(f"{2 * number + 4} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for text in pages:
        drawing = f"BT /F 12 Tf 20 100 Td ({text}) Tj ET"
        contents = len(objects) + 2
        objects += [
            (
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] "
                f"/Resources << /Font << /F 3 0 R >> >> /Contents {contents} 0 R >>"
            ),
            f"<< /Length {len(drawing)} >>\nstream\n{drawing}\nendstream",
        ]
    made, places = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return made + f"{end}startxref\n{len(made)}\n%%EOF\n".encode()
